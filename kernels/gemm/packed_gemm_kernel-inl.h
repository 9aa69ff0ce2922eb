// Included by packed_gemm_cpu.cpp inside HWY_NAMESPACE, once per set of compiler attributes: one tile of a
// matrix product. The sums of all its rows and columns stay in registers over k.

template <class Math, int kRows, int kVectors>
struct Tile {
  static constexpr int kLanes = static_cast<int>(hn::MaxLanes(DW()));
  // Few rows: several sums for each element, over every other step, hide the latency of the multiply-add.
  static constexpr int kSets = kRows * kVectors >= 7 ? 1 : kRows * kVectors >= 4 ? 2 : kRows * kVectors >= 2 ? 4 : 8;
  // Rows are found from every third one, so that few registers hold addresses.
  static constexpr int kBases = (kRows + 2) / 3;
  using Sums = typename Math::Sum[kRows][kVectors];

  static HWY_INLINE void step(const uint32_t* const* bases, int64_t stride, int64_t s, const uint32_t* b, Sums& sums) {
#pragma GCC unroll 4
    for (int part = 0; part < Math::kParts; ++part) {
      typename Math::Operand right[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) right[v] = Math::right(b + v * kLanes, part);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const auto left = Math::left(bases[i / 3][(i % 3) * stride + s], part);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[i][v] = Math::add(sums[i][v], left, right[v]);
      }
    }
  }

  static void run(const TileRun& run) {
    Sums sums[kSets];
#pragma GCC unroll 8
    for (int set = 0; set < kSets; ++set) {
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[set][i][v] = Math::zero();
      }
    }
    const int64_t stride = run.a_stride;
    const uint32_t* bases[kBases];
#pragma GCC unroll 4
    for (int g = 0; g < kBases; ++g) bases[g] = run.a + 3 * g * stride;
    const uint32_t* b = run.b;
    const char* ahead = run.prefetch;
    const auto advance = [&](int steps) HWY_ATTR {
      b += steps * kVectors * kLanes;
#pragma GCC unroll 4
      for (int g = 0; g < kBases; ++g) {
        bases[g] += steps;
        // Keeps the compiler from making one pointer of each row.
        asm("" : "+r"(bases[g]));
      }
    };
    int64_t left = run.steps;
    for (; left >= kSets; left -= kSets) {
#pragma GCC unroll 8
      for (int set = 0; set < kSets; ++set) {
        __builtin_prefetch(ahead, 0, 2);
        ahead += run.prefetch_step;
        step(bases, stride, set, b + set * kVectors * kLanes, sums[set]);
      }
      advance(kSets);
    }
    for (; left > 0; --left) {
      step(bases, stride, 0, b, sums[0]);
      advance(1);
    }
    store(run, sums);
  }

  static HWY_INLINE void store(const TileRun& run, Sums (&sums)[kSets]) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        uint32_t* c = run.c + i * run.c_stride + v * kLanes;
#pragma GCC unroll 8
        for (int width = kSets / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
          for (int set = 0; set < width; ++set) sums[set][i][v] = Math::sum(sums[set][i][v], sums[set + width][i][v]);
        }
        if (run.adds) sums[0][i][v] = Math::sum(sums[0][i][v], Math::load(c));
        Math::store(sums[0][i][v], c);
      }
    }
  }
};

template <class Math, int kRows>
HWY_INLINE void fill_row_count(TileKernels& kernels) {
  kernels.run[kRows - 1][0] = &Tile<Math, kRows, 1>::run;
  kernels.run[kRows - 1][1] = &Tile<Math, kRows, 2>::run;
  kernels.run[kRows - 1][2] = &Tile<Math, kRows, 3>::run;
}

template <class Math>
void fill(TileKernels& kernels, const char* name) {
  kernels.lanes = static_cast<int>(hn::MaxLanes(DW()));
  kernels.name = name;
  // 27 or 12 sums, three right operands and a left one: all registers but one, or all.
  // Widening takes one more.
  kernels.max_rows = kManyRegisters ? 9 : Math::kParts > 1 ? 3 : 4;
  fill_row_count<Math, 1>(kernels);
  fill_row_count<Math, 2>(kernels);
  fill_row_count<Math, 3>(kernels);
  fill_row_count<Math, 4>(kernels);
  if constexpr (kManyRegisters) {
    fill_row_count<Math, 5>(kernels);
    fill_row_count<Math, 6>(kernels);
    fill_row_count<Math, 7>(kernels);
    fill_row_count<Math, 8>(kernels);
    fill_row_count<Math, 9>(kernels);
  }
}
