// Every collective with every backend, dtype, op and layout, compared with expected values written out.
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "tests/distributed/on_device.h"

namespace tensord::distributed::collectives_test {
namespace {

using namespace fixtures;
using Kind = ReduceOp::Kind;
using Complex = std::complex<double>;
using Values = std::vector<Complex>;

constexpr ReduceOp kAllOps[] = {kSum, kAvg, kProduct, kMin, kMax, kBand, kBor, kBxor, premul_sum(0.5)};

// Element i of rank r: small integers, so that every summation order gives the same result.
Complex element(DType dtype, int rank, int64_t i) {
  const double real = static_cast<double>((i * 7 + rank * 3) % 4 + (i % 3 == 0 ? 0 : 1));
  if (dtype == DType::kBool) return (i + rank) % 3 == 0 ? 1 : 0;
  if (is_complex(dtype)) return {real, static_cast<double>((i + rank) % 3)};
  return real;
}

std::function<Complex(int64_t)> elements(DType dtype, int rank, int64_t first = 0) {
  return [=](int64_t i) { return element(dtype, rank, first + i); };
}

bool goes_with(ReduceOp op, DType dtype) {
  if (is_on_device() && !nccl_has(op, dtype)) return false;
  const bool is_real_number = is_floating(dtype), is_whole = is_integral(dtype, true);
  switch (op.kind) {
    case Kind::kAvg:
    case Kind::kPremulSum: return is_real_number || is_complex(dtype);
    case Kind::kMin:
    case Kind::kMax: return !is_complex(dtype);
    case Kind::kBand:
    case Kind::kBor:
    case Kind::kBxor: return is_whole;
    default: return true;
  }
}

Complex reduced(ReduceOp op, DType dtype, int size, int64_t i) {
  Complex all = element(dtype, 0, i);
  if (op.kind == Kind::kPremulSum) all *= op.factor;
  for (int rank = 1; rank < size; ++rank) {
    Complex other = element(dtype, rank, i);
    if (op.kind == Kind::kPremulSum) other *= op.factor;
    const auto bits = [](Complex value) { return static_cast<int64_t>(value.real()); };
    switch (op.kind) {
      case Kind::kSum:
      case Kind::kAvg:
      case Kind::kPremulSum: all += other; break;
      case Kind::kProduct: all *= other; break;
      case Kind::kMin: all = std::min(all.real(), other.real()); break;
      case Kind::kMax: all = std::max(all.real(), other.real()); break;
      case Kind::kBand: all = static_cast<double>(bits(all) & bits(other)); break;
      case Kind::kBor: all = static_cast<double>(bits(all) | bits(other)); break;
      case Kind::kBxor: all = static_cast<double>(bits(all) ^ bits(other)); break;
    }
  }
  if (op.kind == Kind::kAvg) all /= size;
  if (dtype == DType::kBool) return all == 0.0 ? 0 : 1;
  if (dtype == DType::kInt8) return static_cast<int8_t>(static_cast<int64_t>(all.real()));
  if (dtype == DType::kUInt8) return static_cast<uint8_t>(static_cast<int64_t>(all.real()));
  return all;
}

void expect_values(const Tensor& tensor, const std::function<Complex(int64_t)>& expected, const std::string& what) {
  const Values values = values_of(tensor);
  for (size_t i = 0; i < values.size(); ++i) {
    Complex want = expected(static_cast<int64_t>(i));
    // The dtype's rounding of a mean of three.
    const double tolerance = tensor.dtype() == DType::kFloat16 || tensor.dtype() == DType::kBFloat16 ? 1e-2 : 1e-6;
    ASSERT_LE(std::abs(values[i] - want), tolerance * std::max(1.0, std::abs(want))) << what << ", element " << i;
  }
}

class Collectives : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  void SetUp() override {
    if (is_nccl()) device_.emplace();
  }
  bool is_nccl() const { return std::get<0>(GetParam()) == kNccl; }
  void run(const std::function<void(ProcessGroup&)>& fn) { on_ranks(size(), factory(), fn, {.timeout = 20s}); }
  BackendFactory factory() const { return factory_of(std::get<0>(GetParam())); }
  int size() const { return std::get<1>(GetParam()); }
  std::optional<OnDevice> device_;

  // Calls fn with each dtype and each layout of this rank's tensors; neighboring ranks have other layouts.
  void for_types_and_layouts(const std::function<void(ProcessGroup&, DType, Layout, const std::string&)>& fn) {
    run([&](ProcessGroup& group) {
      for (const DType dtype : kAllDTypes) {
        for (size_t i = 0; i < std::size(kAllLayouts); ++i) {
          const Layout layout = kAllLayouts[(i + static_cast<size_t>(group.rank())) % std::size(kAllLayouts)];
          fn(group, dtype, layout, concat(name_of(dtype), ", layout ", static_cast<int>(layout)));
        }
      }
    });
  }
};

TEST_P(Collectives, AllReduce) {
  for_types_and_layouts([](ProcessGroup& group, DType dtype, Layout layout, const std::string& what) {
    for (const ReduceOp op : kAllOps) {
      const Laid laid = laid_out({5, 3}, dtype, layout, elements(dtype, group.rank()));
      if (!goes_with(op, dtype)) {
        EXPECT_THROW(group.all_reduce(laid.tensor, op), Error) << what << to_string(op);
        continue;
      }
      group.all_reduce(laid.tensor, op)->wait();
      expect_values(
          laid.tensor, [&](int64_t i) { return reduced(op, dtype, group.size(), i); }, what + ", " + to_string(op));
      laid.expect_gaps_untouched();
    }
  });
}

TEST_P(Collectives, Reduce) {
  for_types_and_layouts([](ProcessGroup& group, DType dtype, Layout layout, const std::string& what) {
    for (int root = 0; root < group.size(); ++root) {
      const ReduceOp op = goes_with(kAvg, dtype) ? kAvg : kSum;
      if (!goes_with(op, dtype)) continue;
      const Laid laid = laid_out({5, 3}, dtype, layout, elements(dtype, group.rank()));
      group.reduce(laid.tensor, root, op)->wait();
      expect_values(
          laid.tensor,
          [&](int64_t i) {
            return group.rank() == root ? reduced(op, dtype, group.size(), i) : element(dtype, group.rank(), i);
          },
          what);
      laid.expect_gaps_untouched();
    }
  });
}

TEST_P(Collectives, Broadcast) {
  for_types_and_layouts([](ProcessGroup& group, DType dtype, Layout layout, const std::string& what) {
    for (int root = 0; root < group.size(); ++root) {
      const Laid laid = laid_out({2, 3, 4}, dtype, layout, elements(dtype, group.rank()));
      group.broadcast(laid.tensor, root)->wait();
      expect_values(laid.tensor, elements(dtype, root), what);
      laid.expect_gaps_untouched();
    }
  });
}

TEST_P(Collectives, AllGather) {
  for_types_and_layouts([](ProcessGroup& group, DType dtype, Layout layout, const std::string& what) {
    for (const bool is_even : {true, false}) {
      const auto rows = [&](int rank) { return int64_t{2} + (is_even ? 0 : rank); };
      const Laid input = laid_out({rows(group.rank()), 3}, dtype, layout, elements(dtype, group.rank()));
      std::vector<Laid> laid;
      std::vector<Tensor> outputs;
      for (int rank = 0; rank < group.size(); ++rank) {
        laid.push_back(laid_out({rows(rank), 3}, dtype, layout, [](int64_t) { return 0.0; }));
        outputs.push_back(laid.back().tensor);
      }
      group.all_gather(outputs, input.tensor)->wait();
      for (int rank = 0; rank < group.size(); ++rank) {
        expect_values(outputs[static_cast<size_t>(rank)], elements(dtype, rank), what);
        laid[static_cast<size_t>(rank)].expect_gaps_untouched();
      }
      input.expect_gaps_untouched();
    }
  });
}

TEST_P(Collectives, AllGatherIntoTensor) {
  for_types_and_layouts([](ProcessGroup& group, DType dtype, Layout layout, const std::string& what) {
    const Laid input = laid_out({2, 3}, dtype, layout, elements(dtype, group.rank()));
    const Laid output = laid_out({group.size() * 2, 3}, dtype, layout, [](int64_t) { return 0.0; });
    group.all_gather_into_tensor(output.tensor, input.tensor)->wait();
    expect_values(
        output.tensor, [&](int64_t i) { return element(dtype, static_cast<int>(i / 6), i % 6); }, what);
    output.expect_gaps_untouched();
  });
}

TEST_P(Collectives, TheInputMayBeAPartOfTheOutput) {
  run([](ProcessGroup& group) {
    const int64_t rank = group.rank();
    const Tensor output = empty(Dims{group.size(), 4});
    const Tensor input = output.as_view(Dims{4}, Dims{1}, rank * 4);
    fill(input, elements(DType::kFloat32, group.rank()));
    group.all_gather_into_tensor(output, input)->wait();
    expect_values(
        output, [](int64_t i) { return element(DType::kFloat32, static_cast<int>(i / 4), i % 4); }, "part");
  });
}

TEST_P(Collectives, GatherAndScatter) {
  for_types_and_layouts([](ProcessGroup& group, DType dtype, Layout layout, const std::string& what) {
    for (int root = 0; root < group.size(); ++root) {
      const bool is_root = group.rank() == root;
      const Laid own = laid_out({3, 2}, dtype, layout, elements(dtype, group.rank()));
      std::vector<Laid> laid;
      std::vector<Tensor> tensors;
      for (int rank = 0; is_root && rank < group.size(); ++rank) {
        laid.push_back(laid_out({3, 2}, dtype, layout, [](int64_t) { return 0.0; }));
        tensors.push_back(laid.back().tensor);
      }
      group.gather(tensors, own.tensor, root)->wait();
      for (size_t rank = 0; rank < tensors.size(); ++rank) {
        expect_values(tensors[rank], elements(dtype, static_cast<int>(rank)), what + ", gather");
        laid[rank].expect_gaps_untouched();
        fill(tensors[rank], elements(dtype, static_cast<int>(rank), 5));
      }
      group.scatter(own.tensor, tensors, root)->wait();
      expect_values(own.tensor, elements(dtype, group.rank(), 5), what + ", scatter");
      own.expect_gaps_untouched();
    }
  });
}

TEST_P(Collectives, ReduceScatter) {
  for_types_and_layouts([](ProcessGroup& group, DType dtype, Layout layout, const std::string& what) {
    for (const ReduceOp op : kAllOps) {
      if (!goes_with(op, dtype)) continue;
      // Parts of different sizes: rank r gets 1 + r rows.
      std::vector<Laid> laid;
      std::vector<Tensor> inputs;
      std::vector<int64_t> first{0};
      for (int rank = 0; rank < group.size(); ++rank) {
        laid.push_back(laid_out({1 + rank, 3}, dtype, layout, elements(dtype, group.rank(), first.back())));
        inputs.push_back(laid.back().tensor);
        first.push_back(first.back() + 3 * (1 + rank));
      }
      const auto own = static_cast<size_t>(group.rank());
      const Laid output = laid_out({1 + group.rank(), 3}, dtype, layout, [](int64_t) { return 0.0; });
      group.reduce_scatter(output.tensor, inputs, op)->wait();
      expect_values(
          output.tensor, [&](int64_t i) { return reduced(op, dtype, group.size(), first[own] + i); },
          what + ", " + to_string(op));
      output.expect_gaps_untouched();
      // The inputs are unchanged.
      expect_values(inputs[own], elements(dtype, group.rank(), first[own]), what + ", input");
    }
  });
}

TEST_P(Collectives, ReduceScatterTensor) {
  for_types_and_layouts([](ProcessGroup& group, DType dtype, Layout layout, const std::string& what) {
    if (!goes_with(kSum, dtype)) return;
    const Laid input = laid_out({group.size() * 2, 3}, dtype, layout, elements(dtype, group.rank()));
    const Laid output = laid_out({2, 3}, dtype, layout, [](int64_t) { return 0.0; });
    group.reduce_scatter_tensor(output.tensor, input.tensor)->wait();
    expect_values(
        output.tensor, [&](int64_t i) { return reduced(kSum, dtype, group.size(), group.rank() * 6 + i); }, what);
    output.expect_gaps_untouched();
    expect_values(input.tensor, elements(dtype, group.rank()), what + ", input");
  });
}

TEST_P(Collectives, AllToAll) {
  for_types_and_layouts([](ProcessGroup& group, DType dtype, Layout layout, const std::string& what) {
    // Rank r sends 1 + (r + s) % 3 rows to rank s; the elements encode sender and receiver.
    const auto rows = [](int from, int to) { return int64_t{1} + (from + to) % 3; };
    const auto message = [dtype](int from, int to) { return elements(dtype, from, 10 * to); };
    std::vector<Laid> in, out;
    std::vector<Tensor> inputs, outputs;
    for (int rank = 0; rank < group.size(); ++rank) {
      in.push_back(laid_out({rows(group.rank(), rank), 2}, dtype, layout, message(group.rank(), rank)));
      out.push_back(laid_out({rows(rank, group.rank()), 2}, dtype, layout, [](int64_t) { return 0.0; }));
      inputs.push_back(in.back().tensor);
      outputs.push_back(out.back().tensor);
    }
    group.all_to_all(outputs, inputs)->wait();
    for (int rank = 0; rank < group.size(); ++rank) {
      expect_values(outputs[static_cast<size_t>(rank)], message(rank, group.rank()), what);
      out[static_cast<size_t>(rank)].expect_gaps_untouched();
    }
  });
}

TEST_P(Collectives, AllToAllSingle) {
  for_types_and_layouts([](ProcessGroup& group, DType dtype, Layout layout, const std::string& what) {
    for (const bool is_even : {true, false}) {
      const auto rows = [&](int from, int to) { return is_even ? int64_t{2} : int64_t{(from + 2 * to) % 3}; };
      std::vector<int64_t> in_rows, out_rows, first{0};
      int64_t in_all = 0, out_all = 0;
      for (int rank = 0; rank < group.size(); ++rank) {
        in_rows.push_back(rows(group.rank(), rank));
        out_rows.push_back(rows(rank, group.rank()));
        in_all += in_rows.back();
        out_all += out_rows.back();
      }
      const Laid input = laid_out({in_all, 2}, dtype, layout, elements(dtype, group.rank()));
      const Laid output = laid_out({out_all, 2}, dtype, layout, [](int64_t) { return 0.0; });
      group
          .all_to_all_single(output.tensor, input.tensor, is_even ? std::span<const int64_t>() : out_rows,
                             is_even ? std::span<const int64_t>() : in_rows)
          ->wait();
      Values expected;
      for (int from = 0; from < group.size(); ++from) {
        int64_t at = 0;
        for (int to = 0; to < group.rank(); ++to) at += 2 * rows(from, to);
        for (int64_t i = 0; i < 2 * rows(from, group.rank()); ++i) expected.push_back(element(dtype, from, at + i));
      }
      ASSERT_EQ(static_cast<int64_t>(expected.size()), output.tensor.numel());
      expect_values(
          output.tensor, [&](int64_t i) { return expected[static_cast<size_t>(i)]; }, what);
      output.expect_gaps_untouched();
    }
  });
}

TEST_P(Collectives, SendAndRecv) {
  for_types_and_layouts([](ProcessGroup& group, DType dtype, Layout layout, const std::string& what) {
    // On a device, tags do not select messages: nccl_test covers those.
    if (group.size() == 1 || is_on_device()) return;
    const int next = (group.rank() + 1) % group.size(), before = (group.rank() + group.size() - 1) % group.size();
    // All ranks send before any receives: two messages of one tag and one of another.
    std::vector<WorkPtr> sent;
    for (const int message : {0, 1, 2}) {
      const Laid laid = laid_out({4, 3}, dtype, layout, elements(dtype, group.rank(), message));
      sent.push_back(group.send(laid.tensor, next, message == 2 ? 9u : 0u));
    }
    for (const int message : {2, 0, 1}) {
      const Laid laid = laid_out({4, 3}, dtype, layout, [](int64_t) { return 0.0; });
      const WorkPtr work =
          group.recv(laid.tensor, message == 1 ? ProcessGroup::kAnyRank : before, message == 2 ? 9u : 0u);
      work->wait();
      EXPECT_EQ(work->source_rank(), before);
      expect_values(laid.tensor, elements(dtype, before, message), what);
      laid.expect_gaps_untouched();
    }
    for (const WorkPtr& work : sent) work->wait();
    group.barrier()->wait();
  });
}

TEST_P(Collectives, CoalescedTensorsOfAnyShape) {
  for_types_and_layouts([](ProcessGroup& group, DType dtype, Layout layout, const std::string& what) {
    if (!goes_with(kSum, dtype)) return;
    const Laid a = laid_out({3, 2}, dtype, layout, elements(dtype, group.rank()));
    const Laid b = laid_out({5}, dtype, layout, elements(dtype, group.rank(), 6));
    const Laid scalar = laid_out({}, dtype, Layout::kDense, elements(dtype, group.rank(), 11));
    group.all_reduce_coalesced({a.tensor, b.tensor, scalar.tensor})->wait();
    expect_values(
        a.tensor, [&](int64_t i) { return reduced(kSum, dtype, group.size(), i); }, what);
    expect_values(
        b.tensor, [&](int64_t i) { return reduced(kSum, dtype, group.size(), 6 + i); }, what);
    expect_values(
        scalar.tensor, [&](int64_t i) { return reduced(kSum, dtype, group.size(), 11 + i); }, what);
    a.expect_gaps_untouched();
    b.expect_gaps_untouched();
  });
}

TEST_P(Collectives, TensorsWithoutElements) {
  run([](ProcessGroup& group) {
    const Tensor none = empty(Dims{0, 3});
    group.all_reduce(none)->wait();
    group.broadcast(none, group.size() - 1)->wait();
    std::vector<Tensor> outputs;
    for (int rank = 0; rank < group.size(); ++rank) outputs.push_back(empty(Dims{rank, 3}));
    const Tensor own = empty(Dims{group.rank(), 3});
    fill(own, [](int64_t) { return 2.0; });
    group.all_gather(outputs, own)->wait();
    for (const Tensor& output : outputs)
      expect_values(
          output, [](int64_t) { return 2.0; }, "some without elements");
    group.reduce_scatter(none, std::vector<Tensor>(static_cast<size_t>(group.size()), none))->wait();
    group
        .all_to_all(std::vector<Tensor>(static_cast<size_t>(group.size()), none),
                    std::vector<Tensor>(static_cast<size_t>(group.size()), none))
        ->wait();
  });
}

TEST_P(Collectives, ManyElementsInAllSegments) {
  run([](ProcessGroup& group) {
    // Several of the backend's segments; the count is prime to all sizes.
    constexpr int64_t kCount = 1'300'003;
    const Tensor given = Tensor::empty(Dims{kCount}, DType::kInt32);
    for (int64_t i = 0; i < kCount; ++i) given.data<int32_t>()[i] = static_cast<int32_t>(i * (group.rank() + 1));
    const Tensor tensor = given.to(device_of_tensors());
    group.all_reduce(tensor)->wait();
    const int64_t factor = group.size() * (group.size() + 1) / 2;
    const Tensor sum = tensor.to(Device{});
    for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(sum.data<int32_t>()[i], static_cast<int32_t>(i * factor)) << i;
    group.broadcast(tensor, group.size() - 1)->wait();
    ASSERT_EQ(tensor.to(Device{}).data<int32_t>()[kCount - 1], static_cast<int32_t>((kCount - 1) * factor));
  });
}

TEST_P(Collectives, AllRanksHaveTheSameBits) {
  run([](ProcessGroup& group) {
    for (const int64_t count : {1, 7, 100'003}) {
      const Tensor given = Tensor::empty(Dims{count}, DType::kFloat32);
      unsigned seed = 17u + static_cast<unsigned>(group.rank());
      for (int64_t i = 0; i < count; ++i) given.data<float>()[i] = static_cast<float>(rand_r(&seed)) / 1e5f - 1e4f;
      const Tensor first = given.clone().to(device_of_tensors()), second = given.clone().to(device_of_tensors());
      group.all_reduce(first)->wait();
      group.all_reduce(second)->wait();
      const Tensor tensor = first.to(Device{}), again = second.to(Device{});
      EXPECT_EQ(std::memcmp(tensor.raw_data(), again.raw_data(), tensor.size_bytes()), 0) << "not the same twice";
      const auto all =
          group.all_gather_bytes(std::string(static_cast<const char*>(tensor.raw_data()), tensor.size_bytes()));
      for (const std::string& bytes : all) EXPECT_EQ(bytes, all.front()) << "not the same on all ranks";
    }
  });
}

TEST_P(Collectives, NanStaysAndIntegersWrapAround) {
  run([](ProcessGroup& group) {
    for (int where = 0; where < group.size(); ++where) {
      for (const ReduceOp op : {kMin, kMax, kSum}) {
        const Tensor tensor = empty(Dims{2});
        const bool has_nan = group.rank() == where;
        fill(tensor, [&](int64_t i) { return has_nan && i == 0 ? std::numeric_limits<double>::quiet_NaN() : 1.0; });
        group.all_reduce(tensor, op)->wait();
        const Values values = values_of(tensor);
        EXPECT_TRUE(std::isnan(values[0].real())) << to_string(op) << " of a NaN on rank " << where;
        EXPECT_FALSE(std::isnan(values[1].real()));
      }
    }
    const Tensor large = Tensor::scalar<int8_t>(100).to(device_of_tensors());
    group.all_reduce(large)->wait();
    EXPECT_EQ(large.item_int(), static_cast<int8_t>(100 * group.size()));
  });
}

TEST_P(Collectives, BytesOfAnySize) {
  run([](ProcessGroup& group) {
    const auto text = [](int rank) {
      return std::string(static_cast<size_t>(rank * 1000), static_cast<char>('a' + rank));
    };
    const auto all = group.all_gather_bytes(text(group.rank()));
    ASSERT_EQ(all.size(), static_cast<size_t>(group.size()));
    for (int rank = 0; rank < group.size(); ++rank) EXPECT_EQ(all[static_cast<size_t>(rank)], text(rank));
    const int root = group.size() - 1;
    EXPECT_EQ(group.broadcast_bytes(group.rank() == root ? "from the root" : "", root), "from the root");
    const auto gathered = group.gather_bytes(text(group.rank()), root);
    EXPECT_EQ(gathered, group.rank() == root ? all : std::vector<std::string>());
    EXPECT_EQ(group.scatter_bytes(group.rank() == root ? all : std::vector<std::string>(), root), text(group.rank()));
  });
}

TEST_P(Collectives, GroupsOfSomeRanks) {
  run([](ProcessGroup& group) {
    std::vector<int> even, reversed;
    for (int rank = 0; rank < group.size(); ++rank) {
      if (rank % 2 == 0) even.push_back(rank);
      reversed.insert(reversed.begin(), rank);
    }
    const auto evens = group.new_group(even), all = group.new_group(reversed);
    ASSERT_EQ(evens != nullptr, group.rank() % 2 == 0);
    ASSERT_TRUE(all);
    EXPECT_EQ(all->rank(), group.size() - 1 - group.rank());
    const Tensor one = Tensor::scalar<int64_t>(1).to(device_of_tensors());
    // In a small group while others continue in the large one.
    if (evens) {
      evens->all_reduce(one)->wait();
      EXPECT_EQ(one.item_int(), static_cast<int64_t>(even.size()));
    }
    const Tensor rank = Tensor::scalar<int64_t>(group.rank()).to(device_of_tensors());
    all->broadcast(rank, 0)->wait();
    EXPECT_EQ(rank.item_int(), group.size() - 1);
    group.barrier()->wait();
    if (evens) evens->close();
    all->close();
    EXPECT_THROW(group.new_group(std::vector<int>{0, 0}), Error);
    EXPECT_THROW(group.new_group(std::vector<int>{group.size()}), Error);
  });
}

TEST_P(Collectives, WorksTellTheirEnd) {
  run([](ProcessGroup& group) {
    std::vector<WorkPtr> works;
    std::vector<Tensor> tensors;
    std::atomic<int> ended = 0;
    for (int i = 0; i < 50; ++i) {
      tensors.push_back(Tensor::scalar<int64_t>(group.rank() + i).to(device_of_tensors()));
      works.push_back(group.all_reduce(tensors.back()));
      works.back()->on_done([&](const Work& work) {
        EXPECT_FALSE(work.error());
        ++ended;
      });
    }
    works.back()->wait(20s);  // waits for its end on a device too
    EXPECT_TRUE(works.front()->is_done());
    EXPECT_EQ(ended, 50);
    EXPECT_EQ(works.front()->number() + 49, works.back()->number());
    const int64_t ranks = group.size() * (group.size() - 1) / 2;
    for (int i = 0; i < 50; ++i) EXPECT_EQ(tensors[static_cast<size_t>(i)].item_int(), ranks + i * group.size());
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, Collectives,
                         ::testing::Combine(::testing::ValuesIn(names_with_nccl()), ::testing::Values(1, 2, 3, 4)),
                         [](const auto& info) { return concat(std::get<0>(info.param), std::get<1>(info.param)); });

}  // namespace
}  // namespace tensord::distributed::collectives_test
