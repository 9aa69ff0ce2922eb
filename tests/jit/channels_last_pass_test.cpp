// Convolutions that give their results in channels-last order, as far as nobody can tell.
#include <functional>

#include "tests/jit/packed_fixture.h"

namespace tensord::jit::channels_last_pass_test {
namespace {

using namespace packed_graphs;

TEST(ChannelsLast, ReachesThroughPoolingAndCat) {
  const ConvNet net;
  const auto after = expect_same(net.head + R"(
    %c : Tensor = aten::conv2d(%x, %w1, %b1, %twos, %ones, %ones, %one)
    %p : Tensor = aten::max_pool2d(%c, %threes, %twos, %ones, %ones, %false)
    %q : Tensor = aten::avg_pool2d(%p, %twos, %ones, %zeros, %false, %true, %none)
    %l : List[Tensor] = prim::ListConstruct(%q, %q)
    %k : Tensor = aten::cat(%l, %two)
    %f : Tensor = aten::conv2d(%k, %w2, %none, %ones, %zeros, %ones, %one)
    %shape : List[int] = prim::ListConstruct(%two, %minus)
    %o : Tensor = aten::view(%f, %shape)
    return (%o, %k)
)",
                                 net.constants, {random({2, 8, 17, 15})});
  // One copy before the view, one for the output.
  EXPECT_EQ(count(*after, "aten::contiguous"), 2);
}

TEST(ChannelsLast, ReachesThroughAListThatGrows) {
  const ConvNet net;
  const auto after = expect_same(net.head + R"(
    %c : Tensor = aten::conv2d(%x, %w1, %b1, %ones, %ones, %ones, %one)
    %l : List[Tensor] = prim::ListConstruct(%c)
    %a : Tensor = aten::cat(%l, %two)
    %d : Tensor = aten::conv2d(%a, %w2, %none, %ones, %zeros, %ones, %one)
    %same : List[Tensor] = aten::append.t(%l, %d)
    %k : Tensor = aten::cat(%l, %two)
    return (%k)
)",
                                 net.constants, {random({2, 8, 6, 5})});
  EXPECT_EQ(count(*after, "aten::contiguous"), 1);
}

TEST(ChannelsLast, ElementsReadFromAListAreContiguous) {
  const ConvNet net;
  const auto after = expect_same(net.head + R"(
    %c : Tensor = aten::conv2d(%x, %w1, %b1, %ones, %ones, %ones, %one)
    %l : List[Tensor] = prim::ListConstruct(%c)
    %e : Tensor = aten::__getitem__.t(%l, %zero)
    %shape : List[int] = prim::ListConstruct(%two, %minus)
    %o : Tensor = aten::view(%e, %shape)
    return (%o)
)",
                                 net.constants, {random({2, 8, 6, 5})});
  EXPECT_EQ(count(*after, "aten::contiguous"), 1);
}

TEST(ChannelsLast, GivesUpWhereACopyCouldBeTold) {
  const ConvNet net;
  const auto after = expect_same(net.head + R"(
    %c : Tensor = aten::conv2d(%x, %w1, %b1, %ones, %ones, %ones, %one)
    %s : Tensor = aten::select.int(%c, %one, %zero)
    %z : Tensor = aten::zero_(%s)
    %r : Tensor = aten::sigmoid(%c)
    return (%r)
)",
                                 net.constants, {random({2, 8, 6, 5})});
  EXPECT_EQ(count(*after, "aten::contiguous"), 0);
  EXPECT_EQ(count(*after, "tensord::packed"), 1);
}

// One graph for each way in which a copy would be observable; its convolutions must stay unchanged.
TEST(ChannelsLast, GivesUpWhereSomethingIsWrittenLater) {
  const ConvNet net;
  const char* const bodies[] = {// through another view, in a branch, after the reader
                                R"(
    %shape : List[int] = prim::ListConstruct(%two, %minus)
    %w : Tensor = aten::view(%c, %shape)
    %s : Tensor = aten::select.int(%c, %one, %zero)
    %z : Tensor = aten::zero_(%s)
    %r : Tensor = aten::sigmoid(%w)
    return (%r)
)",
                                R"(
    %shape : List[int] = prim::ListConstruct(%two, %minus)
    %w : Tensor = aten::view(%c, %shape)
    prim::If(%true)
      block0():
        %z : Tensor = aten::zero_(%c)
        -> ()
      block1():
        -> ()
    return (%w)
)",
                                // a list that a loop writes to
                                R"(
    %l : List[Tensor] = prim::ListConstruct(%c)
    %e : Tensor = aten::__getitem__.t(%l, %zero)
    %z : Tensor = aten::mul_.Scalar(%e, %two)
    return (%c)
)"};
  for (const char* body : bodies) {
    const auto after =
        expect_same(net.head + "    %c : Tensor = aten::conv2d(%x, %w1, %b1, %ones, %ones, %ones, %one)\n" + (body + 1),
                    net.constants, {random({2, 8, 6, 5})});
    EXPECT_EQ(count(*after, "aten::contiguous"), 0) << print_graph(*after);
    EXPECT_EQ(count(*after, "tensord::packed"), 1);
  }
}

// Lists with other readers, or built in another block than their readers', get contiguous tensors.
TEST(ChannelsLast, ListsOfOtherBlocks) {
  const ConvNet net;
  const auto after = expect_same(net.head + R"(
    %c : Tensor = aten::conv2d(%x, %w1, %b1, %ones, %ones, %ones, %one)
    %l : List[Tensor] = prim::ListConstruct(%c, %c)
    %k : Tensor = prim::If(%true)
      block0():
        %a : Tensor = aten::cat(%l, %two)
        -> (%a)
      block1():
        %s : Tensor = aten::stack(%l, %zero)
        -> (%s)
    return (%k)
)",
                                 net.constants, {random({2, 8, 6, 5})});
  EXPECT_GE(count(*after, "aten::contiguous"), 1);
}

size_t pass_visits(const std::string& body, const ConvNet& net) {
  auto graph = parse_graph(net.head + body, net.constants);
  PassContext context;
  prepack_weights(*graph, context);
  return channels_last_visits(*graph, context);
}

// Chains of residual sums, whose sources are all earlier convolutions; lists of many convolutions.
TEST(ChannelsLast, TakesATimeThatGrowsAsTheGraphDoes) {
  const ConvNet net;
  const auto layer = [](int i, const std::string& input) {
    return concat("    %c", i, " : Tensor = aten::conv2d(", input, ", %w2, %none, %ones, %zeros, %ones, %one)\n");
  };
  const auto residual = [&](int count) {
    std::string body = layer(0, "%x"), last = "%c0";
    for (int i = 1; i < count; ++i) {
      body += layer(i, last) + concat("    %a", i, " : Tensor = aten::add.Tensor(%c", i, ", ", last, ", %one)\n");
      last = concat("%a", i);
    }
    return body + "    return (" + last + ")\n";
  };
  const auto list = [&](int count) {
    std::string body = layer(0, "%x") + "    %l : List[Tensor] = prim::ListConstruct(%c0)\n";
    for (int i = 1; i < count; ++i) {
      body += layer(i, "%x") + concat("    %s", i, " : List[Tensor] = aten::append.t(%l, %c", i, ")\n");
    }
    return body + "    %k : Tensor = aten::cat(%l, %two)\n    return (%k)\n";
  };
  for (const auto& text : {std::function<std::string(int)>(residual), std::function<std::string(int)>(list)}) {
    const size_t visits = pass_visits(text(500), net);
    EXPECT_GT(visits, 500u);
    // Four times as many where each layer walks over all before it.
    EXPECT_LT(pass_visits(text(1000), net), visits * 21 / 10);
  }
}

}  // namespace
}  // namespace tensord::jit::channels_last_pass_test
