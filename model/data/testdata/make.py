"""Makes fortran.npy: 8 images of the fixtures' formula, first axis fastest; groups.h5; and *.mat. python3 make.py, with numpy 1.24, h5py 3.7 and scipy 1.10."""
import h5py
import numpy as np

n, y, x, c = np.ogrid[:8, :64, :64, :3]
np.save("fortran.npy", np.asfortranarray(((7 * n + 3 * y + 5 * x + 11 * c) & 255).astype("u1")))

with h5py.File("groups.h5", "w", libver="latest") as f:
    labels = np.array([[i // 3, i % 3 / 10] for i in range(6)], ">f4")
    images = np.repeat(np.arange(6) / 5, 4096).reshape(6, 64, 64).astype(">f4")
    f.create_dataset("train/images", data=images, chunks=(1, 64, 64), maxshape=(None, 64, 64), compression="lzf")
    f.create_dataset("train/labels", data=labels)
    f.create_dataset("test/images", data=np.zeros((3, 64, 64), "u1"), compression="gzip")
    f.create_dataset("test/labels", data=labels[:3])
    f.create_dataset("factor_names", data=["größe", "hue"], dtype=h5py.string_dtype())

# The images of fortran.npy as MATLAB keeps them, rows × columns × channels × images, with a label for each image: level 5, compressed and
# plain, and 7.3, which is HDF5 with the axes reversed behind a header. The last is as Python programs save it, images first.
import scipy.io  # 1.10

images = ((7 * n + 3 * y + 5 * x + 11 * c) & 255).astype("u1")
native, labels = np.transpose(images, (1, 2, 3, 0)), np.array([[1.0], [1], [1], [1], [2], [2], [2], [10]])
scipy.io.savemat("level5.mat", {"X": native, "y": labels}, do_compression=True)
scipy.io.savemat("level5_plain.mat", {"X": native[:, :, :, :2], "y": labels[-2:], "text": "not used"})
scipy.io.savemat("level5_python.mat", {"images": images, "labels": np.arange(16).reshape(8, 2) // 5}, do_compression=True)
with h5py.File("level73.mat", "w", userblock_size=512) as f:
    f.create_dataset("X", data=np.ascontiguousarray(native.T), chunks=(2, 3, 64, 64), compression="gzip")
    f.create_dataset("y", data=labels.T)
    f.create_dataset("#refs#/a", data=np.zeros((1, 8)))
with open("level73.mat", "r+b") as f:
    f.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
