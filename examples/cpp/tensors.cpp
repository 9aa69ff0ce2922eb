// 1. Tensors: typed operators, keyword arguments, indexing, views.
#include <tensord/index.h>
#include <tensord/operators.h>
#include <tensord/tensor.h>

#include <cstdio>

int main() {
  using namespace tensord;
  const Tensor x = reshape(arange(12), {3, 4});
  const Tensor y = x.to(DType::kFloat32) / 2 + 1;  // or to(x, DType::kFloat32)
  std::printf("mean %.2f\n", mean(y).item_double());
  const auto [largest, where_it_is] = max(y, 1);
  std::printf("largest of row 2: %.1f at %d\n", index(largest, {2}).item_double(),
              static_cast<int>(index(where_it_is, {2}).item_int()));
  index_put_(y, {Ellipsis, Slice(1, 3)}, 0);  // y[..., 1:3] = 0
  std::printf("sum %.1f, of the second column %.1f\n", sum(y).item_double(), sum(index(y, {Slice(), 1})).item_double());
  const Tensor doubled = y.add(y, {.alpha = 1}), rows = x.index({Slice(1, 3), None}).sum({1}, true);
  const Tensor all = cat({doubled, tensord::ones({1, 4})}, 0);
  std::printf("%s\n", describe(all).c_str());
  std::printf("%s\n", describe(rows).c_str());
  try {
    matmul(y, y);
  } catch (const Error& error) {
    std::printf("refused\n");
  }
}
