// Which instruction sets of Highway the CPU kernels are compiled for: AVX-512, AVX2 with FMA, SSE4, and the
// baseline, which on x86 is one element at a time. The sets between them cost build time and gain nothing here.
// TENSORD_MAX_ISA=avx2|sse4|baseline keeps to lower ones at run time (cpu_isa.h).
// Included before <hwy/foreach_target.h>.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
