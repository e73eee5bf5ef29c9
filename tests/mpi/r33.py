# SPDX-License-Identifier: MIT
"""R33 in Python: sizes, positions and offsets beyond 32 bits through mpi4py, on a sparse file of 5 GiB
whose last 16 bytes go into GPU memory.

    r33.py LIBRARY      the library with tests/support/gpu.h
"""

import ctypes
import sys

from mpi4py import MPI

FILE_SIZE = 5368709120
TAIL = 16
DEVICE = 1


class OnGpu:
    """GPU memory as mpi4py takes it: by the array interface of CUDA, which HIP's libraries use, too."""

    def __init__(self, address):
        self.__cuda_array_interface__ = {
            "shape": (TAIL,), "typestr": "|u1", "data": (address, False), "version": 2}


def check(what, right):
    if not right:
        print(f"R33: {what} is wrong", flush=True)
        MPI.COMM_WORLD.Abort(1)


gpu = ctypes.CDLL(sys.argv[1])
gpu.gpu_alloc.restype = ctypes.c_void_p
gpu.gpu_alloc.argtypes = [ctypes.c_int, ctypes.c_size_t]
gpu.gpu_copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
gpu.gpu_free.argtypes = [ctypes.c_int, ctypes.c_void_p]

memory = gpu.gpu_alloc(DEVICE, TAIL)
host = ctypes.create_string_buffer(TAIL)
status = MPI.Status()
file = MPI.File.Open(MPI.COMM_WORLD, "r33.dat", MPI.MODE_RDWR)
check("Get_size", file.Get_size() == FILE_SIZE)
file.Seek(-TAIL, MPI.SEEK_END)
check("Get_position", file.Get_position() == FILE_SIZE - TAIL)
check("Get_byte_offset", file.Get_byte_offset(FILE_SIZE - TAIL) == FILE_SIZE - TAIL)

file.Read(OnGpu(memory), status)
check("count of Read", status.Get_count(MPI.BYTE) == TAIL)
gpu.gpu_copy(host, memory, TAIL)
check("data of Read", host.raw == b"last of 5 GiB: 1")
check("Get_position behind it", file.Get_position() == FILE_SIZE)

file.Read_at_all(FILE_SIZE - 8, OnGpu(memory), status)
check("count of Read_at_all", status.Get_count(MPI.BYTE) == 8)
gpu.gpu_copy(host, memory, TAIL)
check("data of Read_at_all", host.raw[:8] == b"5 GiB: 1")
file.Close()
gpu.gpu_free(DEVICE, memory)
print("R33 right", flush=True)
