"""Small NumPy files for the reader's tests: python3 make.py, with numpy 1.24."""
import numpy as np

n = np.arange(24).reshape(2, 3, 4)
np.savez("orders.npz", c=n, f=np.asfortranarray(n), big=n.astype(">i2"), half=(n / 8).astype("<f2"), single=(n / 8).astype("<f4"),
         double=-(n / 8), byte=n.astype("u1"), signed=(n - 12).astype("i1"), flag=n % 2 == 0, letters=np.array(["hue", "größe"]),
         bytes=np.array([b"a", b"bcd"]), scalar=np.float64(2.5), empty=np.zeros((0, 3)), complex=n * 1j, huge=np.array([2**64 - 1], "u8"),
         records=np.zeros(2, [("a", "i4"), ("b", "f8")]))
for v in (1, 2, 3):
    with open(f"v{v}.npy", "wb") as f:
        np.lib.format.write_array(f, n.astype("u1"), version=(v, 0))
with open("python2.npy", "wb") as f:
    text = b"{'descr': '|u1', 'fortran_order': False, 'shape': (24L,), }\n"
    f.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(range(24)))
