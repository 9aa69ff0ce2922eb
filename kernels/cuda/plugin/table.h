#pragma once

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/library_table.h"

// What the two libraries (NVIDIA's devices, the emulated ones of tests) share.
namespace tensord::kernels {

#define KERNEL(NAME, JOB) void NAME(const JOB& job, cuda::StreamHandle stream);
#include "kernels/cuda/kernels.def"
#undef KERNEL

const void* kernel_table();
void strided_copy(const cuda::StridedCopyJob& job, cuda::StreamHandle stream);

const void* library_table();
const char* library_state(int index);
void add_blas(LibraryTable& table);
void add_dnn(LibraryTable& table);
void add_fft(LibraryTable& table);
void add_solver(LibraryTable& table);

}  // namespace tensord::kernels
