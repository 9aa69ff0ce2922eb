// Tensor memory in programs: a custom allocator, changes of storages, tensors for other processes.
#include <tensord/tensord.h>
//
#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>

#include "tests/api/items.h"

namespace tensord::memory_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class F>
std::string error_of(F function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::atomic<int> live{0};
std::atomic<int> given{0};

class Own final : public StorageAllocator {
 public:
  DataPtr allocate(size_t size_bytes, Device device) override {
    void* const data = std::aligned_alloc(kAlignment, (size_bytes + kAlignment - 1) / kAlignment * kAlignment);
    ++live, ++given;
    return {data, data, give_back, device};
  }
  DeleterFnPtr raw_deleter() const override { return give_back; }

 private:
  static void give_back(void* data) { --live, std::free(data); }
};

constexpr const char* kSource = R"(
def forward(x: Tensor, y: Tensor) -> Tensor:
  a = torch.matmul(x, y)
  b = torch.softmax(torch.matmul(a, x), 1)
  return torch.matmul(b, a)
)";

// Operators, plans and their arenas, gradients.
TEST(OwnAllocator, IsWhereAllMemoryComesFrom) {
  const Tensor x = arange(64, {.dtype = DType::kFloat32}).view({8, 8}) / 64, y = x + 1;
  const std::vector<float> expected = items_of(matmul(softmax(matmul(matmul(x, y), x), 1), matmul(x, y)));
  Own allocator;
  Tensor kept;
  ASSERT_TRUE(set_allocator(kCPU, &allocator));
  {
    const auto module = jit::Module::compile(kSource);
    jit::Frame frame;
    for (int i = 0; i < 4; ++i) {  // interpreted, then planned
      const std::vector<ops::Value> arguments{x, y};
      kept = module->method("forward").run(frame, arguments).to_tensor();
      EXPECT_THAT(items_of(kept), ::testing::Pointwise(::testing::FloatNear(1e-5F), expected)) << i;
    }
    EXPECT_GT(given, 4);
    EXPECT_GT(live, 1);  // the arena and the result
    const Tensor w = (x * 1).detach().requires_grad_();
    (w * w).sum().backward();
    EXPECT_EQ(items_of(w.grad()), items_of(x * 2));
  }
  EXPECT_TRUE(set_allocator(kCPU, nullptr));
  const int before = given;
  EXPECT_THAT(items_of(kept + 0), ::testing::Pointwise(::testing::FloatNear(1e-5F), expected));
  EXPECT_EQ(given, before);
  kept = Tensor();
  EXPECT_EQ(live, 0);
}

TEST(Memory, ChangesOfStorages) {
  const Tensor x = arange(6, {.dtype = DType::kFloat32}), same = x;
  EXPECT_TRUE(x.resize_({2, 2}).is_same(x));
  EXPECT_THAT(items_of(same), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(x.resize_({3, 3}).storage()->size_bytes(), 36u);
  EXPECT_THAT(items_of(x.resize_({6})), ElementsAre(0, 1, 2, 3, 4, 5));
  const Tensor z = zeros({1});
  z.set_(x.storage(), 1, {2, 2}, {2, 1});
  EXPECT_THAT(items_of(z), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(error_of([&] { x.resize_({100}); }), HasSubstr("held by 1 more"));
  EXPECT_THAT(error_of([&] { z.set_(x.storage(), 8, {2}, {1}); }), HasSubstr("outside"));
  EXPECT_THAT(error_of([&] { z.set_(x.storage(), 0, {2}, {-1}); }), HasSubstr("outside"));
  EXPECT_THAT(error_of([&] { z.set_(Storage(), 0, {2}, {1}); }), HasSubstr("no storage"));
  EXPECT_THAT(error_of([&] { z.set_(Tensor()); }), HasSubstr("'source'"));
  EXPECT_THAT(error_of([&] { z.set_(x.to(DType::kInt64)); }), HasSubstr("expected float32, got int64"));
  z.set_(tensor({7.f}));
  EXPECT_THAT(items_of(z), ElementsAre(7));
  const Tensor w = zeros({2}).requires_grad_();
  for (const Tensor& one : {w, w * 2, w.detach().view({2, 1}).set_(zeros({1})).mul_(1)}) {
    if (!one.requires_grad()) continue;
    EXPECT_THAT(error_of([&] { one.resize_({1}); }), HasSubstr("takes part in a gradient"));
    EXPECT_THAT(error_of([&] { one.set_(z); }), HasSubstr("takes part in a gradient"));
    EXPECT_THAT(error_of([&] { z.set_(one); }), HasSubstr("takes part in a gradient"));
  }
  EXPECT_THAT(error_of([&] { Tensor().resize_({1}); }), HasSubstr("undefined"));
  EXPECT_THAT(error_of([&] { zeros({2}).resize_({-1}); }), HasSubstr("-1"));
  EXPECT_THAT(error_of([&] { zeros({2}).resize_({int64_t{1} << 62, 4}); }), HasSubstr("overflow"));
}

TEST(Memory, ForOtherProcesses) {
  const Tensor x = tensor({1.f, 2.f, 3.f}).requires_grad_();
  const Tensor y = (x * x).sum();
  EXPECT_FALSE(x.is_shared());
  EXPECT_TRUE(x.share_memory_().is_shared());
  y.backward();
  EXPECT_THAT(items_of(x.grad()), ElementsAre(2, 4, 6));
  const Tensor theirs = open_shared(share(x));
  theirs.mul_(2);
  EXPECT_THAT(items_of(x.detach()), ElementsAre(2, 4, 6));
  EXPECT_THAT(error_of([&] { Tensor().is_shared(); }), HasSubstr("undefined"));
  EXPECT_FALSE(x.is_pinned());
  EXPECT_THAT(error_of([&] { x.pin_memory(); }), HasSubstr("pin_memory"));
}

}  // namespace
}  // namespace tensord::memory_test
