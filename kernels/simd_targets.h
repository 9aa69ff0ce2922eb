// Which instruction sets of Highway the CPU kernels are compiled for: AVX-512, AVX2 with
// FMA, and the baseline. The sets between them cost build time and gain nothing here.
// Included before <hwy/foreach_target.h>.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#endif
