"""Makes fortran.npy: 8 images of the fixtures' formula, first axis fastest; and groups.h5. python3 make.py, with numpy 1.24 and h5py 3.7."""
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
