"""Small MATLAB files for the reader's tests: python3 make.py, with scipy 1.10. im[y, x, c, a, e] = (7a + 13e + 3y + 5x + 11c) & 255,
a smaller version of the arrays in Cars3D's files."""
import numpy as np
import scipy.io

y, x, c, a, e = np.ogrid[:8, :6, :3, :4, :2]
im = ((7 * a + 13 * e + 3 * y + 5 * x + 11 * c) & 255).astype(np.uint8)
for name, packed in (("plain", False), ("packed", True)):
    scipy.io.savemat(name + ".mat", {"other": np.eye(3), "im": im, "s": "text", "tiny": np.array([[1, 2]], np.uint8)}, do_compression=packed)
