#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include "core/base/parallel.h"
#include "core/tensor/tensor.h"

// Shared by the programs that time calls for tests/bench/turns.py.
namespace tensord::bench {

// Reproducible random numbers in [low, low + 1); `last`: in channels_last format.
inline Tensor random(const Dims& sizes, bool last = false, float low = -0.5f) {
  const Tensor out = last ? Tensor::empty_strided(sizes, channels_last_strides(sizes), DType::kFloat32)
                          : Tensor::empty(sizes, DType::kFloat32);
  float* const values = out.data<float>();
  uint32_t state = 12345;
  for (int64_t i = 0; i < out.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] = static_cast<float>(state >> 8) / 16777216.0f + low;
  }
  return out;
}

// With one thread the CPU time, which other processes do not affect; with several the wall time.
inline double now_us() {
  if (thread_budget() == 1) return static_cast<double>(std::clock()) * 1e6 / CLOCKS_PER_SEC;
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Microseconds of a call: the median of batches of about 2 ms over 60 ms, at least 3.
template <class Call>
double microseconds(const Call& call) {
  constexpr double kBatchUs = 2e3, kTotalUs = 6e4;
  const double start = now_us();
  int calls = 0;
  for (; calls < 2 || now_us() - start < kBatchUs; ++calls) call();
  const int batch = std::max(1, static_cast<int>(calls * kBatchUs / (now_us() - start)));
  std::vector<double> times;
  for (double sum = 0; sum < kTotalUs || times.size() < 3;) {
    const double begin = now_us();
    for (int i = 0; i < batch; ++i) call();
    const double took = now_us() - begin;
    sum += took;
    times.push_back(took / batch);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// Answers each line of standard input with one number.
template <class Answer>
int answer_lines(const Answer& answer) {
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(line) << std::endl;
  return 0;
}

}  // namespace tensord::bench
