"""Small HDF5 files for the reader's tests: python3 make.py, with h5py 3.7 on HDF5 1.10. Every element follows one formula:
images[n, y, x, c] = (7n + 3y + 5x + 11c) & 255."""
import h5py
import numpy as np


def pattern(n, h=16, w=16, c=3):
    n, y, x, c = np.ogrid[:n, :h, :w, :c]
    return ((7 * n + 3 * y + 5 * x + 11 * c) & 255).astype(np.uint8)


images = pattern(60)
labels = np.stack([np.arange(60) // 15, np.linspace(-30, 30, 15)[np.arange(60) % 15]], axis=1).astype("<f8")


def make(name, libver=None, image={}, label={}, **kw):
    with h5py.File(name + ".h5", "w", libver=libver, **kw) as f:
        f.create_dataset("images", data=images, **image)
        f.create_dataset("labels", data=labels, **label)


gzip = dict(compression="gzip")
make("contiguous")
make("userblock", userblock_size=1024)
make("official", image=dict(chunks=(15, 4, 4, 1), **gzip), label=dict(chunks=(15, 1), **gzip))
make("ragged", image=dict(chunks=(7, 5, 9, 2), shuffle=True, **gzip), label=dict(chunks=(7, 2), shuffle=True, fletcher32=True, **gzip))
make("each", image=dict(chunks=(1, 16, 16, 3), **gzip))
make("plain", image=dict(chunks=(8, 5, 16, 3), fletcher32=True), label=dict(chunks=(32, 2)))
make("latest", libver="latest", image=dict(chunks=(15, 8, 8, 3), **gzip), label=dict(chunks=(60, 2), **gzip))
make("paged", libver="latest", image=dict(chunks=(3, 2, 2, 3)))  # 20 × 8 × 8 = 1,280 chunks: more than one page of 1,024
make("lzf", image=dict(chunks=(1, 16, 16, 3), compression="lzf"))
make("big", image=dict(dtype="u1"), label=dict(dtype=">f8"))
make("growing", libver="latest", image=dict(chunks=(15, 8, 8, 3), maxshape=(None, 16, 16, 3), **gzip))

with h5py.File("implicit.h5", "w", libver="latest") as f:
    p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    p.set_chunk((7, 16, 16, 2))
    p.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    d = h5py.h5d.create(f.id, b"images", h5py.h5t.NATIVE_UINT8, h5py.h5s.create_simple(images.shape), p)
    h5py.Dataset(d)[...] = images
    p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    p.set_layout(h5py.h5d.COMPACT)
    d = h5py.h5d.create(f.id, b"labels", h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple(labels.shape), p)
    h5py.Dataset(d)[...] = labels

with h5py.File("types.h5", "w") as f:
    n = np.arange(24).reshape(4, 6)
    for t in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"):
        f.create_dataset(t, data=(n - 12 if t[0] == "i" else n).astype("<" + t), chunks=(3, 4), shuffle=True, fletcher32=True, **gzip)
    holes = f.create_dataset("holes", (10, 4), "<i2", chunks=(2, 4), fillvalue=-7, **gzip)
    holes[4:6] = 1
    f.create_dataset("never", (10, 4), "u1")
    f.create_dataset("text", data=[b"a", b"b"])
    f.create_dataset("flags", data=[True, False])
    f.create_dataset("single", data=1.0)
    f.create_dataset("empty", (0, 3), "u1")
    f["soft"] = h5py.SoftLink("/u1")
    f.create_group("a/b").create_dataset("deep", data=n)
    f["a/b/top"] = f["a"]  # a cycle

with h5py.File("dense.h5", "w", libver="latest") as f:
    for i in range(12):
        f.create_dataset(f"d{i}", data=[i])

with h5py.File("virtual.h5", "w", libver="latest") as f:
    v = h5py.VirtualLayout((60, 16, 16, 3), "u1")
    v[:] = h5py.VirtualSource("contiguous.h5", "images", (60, 16, 16, 3))
    f.create_virtual_dataset("images", v)

with h5py.File("grown.h5", "w", libver="latest") as f:
    n = np.arange(60).reshape(6, 10).astype("<i4")
    f.create_dataset("across", data=n, chunks=(2, 3), maxshape=(9, None))  # extensible array, its endless axis not the first
    f.create_dataset("room", data=n, chunks=(2, 3), maxshape=(20, 30), **gzip)  # fixed array of more chunks than there are
    f.create_dataset("both", data=n, chunks=(2, 3), maxshape=(None, None))  # B-tree of version 2
    f.create_dataset("packed", data=n, chunks=(1, 1), maxshape=(None, None), shuffle=True, fletcher32=True, **gzip)
    f.create_dataset("many", data=np.arange(5400).reshape(60, 90).astype("u1"), chunks=(1, 1), maxshape=(None, None))  # nodes at three depths
    f.create_dataset("shrunk", data=n, chunks=(2, 3), maxshape=(None, None)).resize((4, 5))
    far = f.create_dataset("far", (150000,), "u1", chunks=(1,), maxshape=(None,), fillvalue=7)
    for i in (0, 3, 4, 20, 500, 9000, 70000, 140000, 140001, 149999):  # index block, data blocks, secondary blocks, pages
        far[i] = i % 251
    f.create_group("links")
    for i in range(400):  # a heap of several rows of blocks
        f[f"links/{i:03d}_{'x' * 40}"] = f["room"]

with h5py.File("kinds.h5", "w") as f:
    f.create_dataset("big", data=np.arange(-3, 3, dtype=">i2"))
    f.create_dataset("bigf", data=np.linspace(0, 1, 5).astype(">f4"), chunks=(2,), **gzip)
    f.create_dataset("colour", data=np.array([2, 0, 1], "i1"), dtype=h5py.enum_dtype({"red": 0, "green": 1, "blue": 2}, basetype="i1"))
    f.create_dataset("names", data=["größe", "shape", ""], dtype=h5py.string_dtype())
    f.create_dataset("fixed", data=np.array([b"a", b"bcd"]))
    f["numbers"] = np.dtype("<u2")
    f.create_dataset("named", data=[1, 2, 3], dtype=f["numbers"])
    f["way"] = h5py.SoftLink("/types")
    f.create_group("types")
    f["types/v"] = h5py.SoftLink("/named")
    f["types/there"] = h5py.ExternalLink("types.h5", "u1")
    f["round"] = h5py.SoftLink("round")
