#!/bin/sh
# PACKAGE0032 python3-numpy: computes with arrays: linear algebra, transforms, random numbers, files
cat >program.py <<'END'
import numpy as np
a = np.arange(12).reshape(3, 4)
print(a @ a.T, a.mean(axis=0))
print(np.round(np.linalg.solve([[3.0, 1.0], [1.0, 2.0]], [9.0, 8.0]), 6), round(np.linalg.det(np.eye(50) * 2) / 2**50, 6))
print(np.abs(np.fft.fft(np.ones(8))).round(6))
print(np.random.default_rng(1).integers(0, 100, 5))
np.save("a.npy", a); print(np.load("a.npy", mmap_mode="r")[1])
big = np.random.default_rng(2).random((200, 200)); print(np.allclose(big @ np.linalg.inv(big), np.eye(200)))
print(np.sort(np.array(["b", "a"])), a[a % 3 == 0])
END
OPENBLAS_NUM_THREADS=2 python3 program.py
echo "status $?"
