#include "server/commands/convert_sizes.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/run.h"
#include "ops/view.h"
#include "server/commands/engine_inputs.h"

namespace tensord::server {
namespace {

constexpr int64_t kSmallPrimes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
constexpr int64_t kMiddlePrimes[] = {101, 127, 151, 179, 211, 239, 269, 311};
constexpr int64_t kLargePrimes[] = {50021, 50539, 51061, 51593, 52121, 52631, 53161, 53681};
constexpr int64_t kBeyondLimits = 1'048'583;
// Up to this many sizes are varied one at a time, to 1 and beyond any limit.
constexpr size_t kMaxAlone = 4;
constexpr int64_t kSmallest = 4;

bool is_prime(int64_t number) {
  for (int64_t i = 2; i * i <= number; ++i) {
    if (number % i == 0) return false;
  }
  return number > 1;
}

int64_t prime_from(int64_t number) {
  while (!is_prime(number)) ++number;
  return number;
}

template <size_t kCount>
int64_t pick(const int64_t (&primes)[kCount], size_t at) {
  return at < kCount ? primes[at] : prime_from(primes[kCount - 1] + 2 * static_cast<int64_t>(at - kCount + 1));
}

// How dynamic sizes are grouped as equal, in the order in which the groupings are tried.
enum class Joining { kNames, kBatches, kPlaces, kAllOthers };

std::string key_of(Joining joining, const std::string& own, bool is_batch, int64_t dim) {
  if (joining == Joining::kNames) return own;
  if (is_batch) return "batch";
  if (joining == Joining::kBatches) return own;
  return joining == Joining::kPlaces ? concat("dimension ", dim) : "others";
}

SizePlan join_sizes(const std::vector<ConvertInput>& inputs, Joining joining) {
  struct Named {
    bool is_batch;
    int64_t dim;
  };
  std::map<std::string, Named> named;  // by the place where a name first occurs
  std::map<std::string, size_t> found;
  SizePlan plan;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (const int64_t dim : inputs[i].open) {
      const auto at = static_cast<size_t>(dim);
      const std::string name = at < inputs[i].size_names.size() ? inputs[i].size_names[at] : "";
      const std::string own = name.empty() ? concat(i, ":", dim) : "name " + name;
      const Named& first = named.emplace(own, Named{dim == 0, dim}).first->second;
      const auto [place, is_new] = found.emplace(key_of(joining, own, first.is_batch, first.dim), plan.sizes.size());
      if (is_new) plan.sizes.push_back({0, first.is_batch});
      plan.places[{i, dim}] = place->second;
      const ConvertInput& input = inputs[i];
      const int64_t given = input.given.defined() ? input.given.size(dim) : input.sizes[at];
      SizePlan::Size& size = plan.sizes[place->second];
      if (given > 0 && size.given == 0) size.given = given;
    }
  }
  return plan;
}

}  // namespace

std::vector<int64_t> SizePlan::example(int64_t set) const {
  std::vector<int64_t> out;
  int64_t others = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    if (!sizes[i].is_batch) ++others;
    if (rule == Rule::kFree) {
      static constexpr size_t kOrder[] = {1, 4, 3};
      const int64_t given = sizes[i].given;
      const int64_t next = prime_from(given + given / 3 + 2 + 4 * place);
      if (given == 0) out.push_back(pick(kSmallPrimes, 2 * i + kOrder[(set - 1) % 3]));
      if (given != 0) out.push_back(set == 1 ? given : set == 2 ? next : prime_from(next + 1));
      continue;
    }
    const int64_t first = sizes[i].given ? sizes[i].given : sizes[i].is_batch ? batch : other * others;
    out.push_back(rule == Rule::kMultiples ? first * set : first + set - 1);
  }
  return out;
}

std::vector<std::vector<int64_t>> SizePlan::probes() const {
  const std::vector<int64_t> first = example(1);
  const size_t count = sizes.size();
  if (count == 0) return {{}};  // no dynamic sizes: remaining unknown sizes depend on data
  // Small sizes that are all equal, and others that are all different.
  std::vector<std::vector<int64_t>> out(kSmallest + 4);
  const auto unit = [&](size_t i) { return rule == Rule::kMultiples ? first[i] : 1; };
  for (size_t i = 0; i < count; ++i) {
    for (int64_t size = 1; size <= kSmallest; ++size) out[static_cast<size_t>(size) - 1].push_back(unit(i) * size);
    out[kSmallest].push_back(unit(i) * pick(kSmallPrimes, i));
    out[kSmallest + 1].push_back(unit(i) * pick(kSmallPrimes, 2 * count - i + 1));
    out[kSmallest + 2].push_back(unit(i) * pick(kMiddlePrimes, i));
    out[kSmallest + 3].push_back(unit(i) * pick(kLargePrimes, count - i));
  }
  for (size_t alone = 0; alone < std::min(count, kMaxAlone); ++alone) {
    for (const int64_t size : {int64_t{1}, kBeyondLimits}) {
      out.push_back(out[kSmallest + 1]);
      out.back()[alone] = unit(alone) * size;
    }
  }
  return out;
}

Dims SizePlan::sizes_of(const std::vector<ConvertInput>& inputs, size_t argument,
                        const std::vector<int64_t>& open) const {
  const ConvertInput& input = inputs[argument];
  Dims out = input.given.defined() ? input.given.sizes() : input.sizes;
  for (const int64_t dim : input.open) out[static_cast<size_t>(dim)] = open[places.at({argument, dim})];
  return out;
}

std::vector<SizePlan> size_plans(const std::vector<ConvertInput>& inputs) {
  std::vector<SizePlan> plans;
  size_t count = 0;
  for (const Joining joining : {Joining::kNames, Joining::kBatches, Joining::kPlaces, Joining::kAllOthers}) {
    SizePlan plan = join_sizes(inputs, joining);
    if (!plans.empty() && plan.sizes.size() == count) continue;
    count = plan.sizes.size();
    plans.push_back(plan);
    using Rule = SizePlan::Rule;
    // Programs may bound their sizes, or require multiples.
    const struct {
      Rule rule;
      int64_t batch, other;
    } rows[] = {{Rule::kMultiples, 2, 8},
                {Rule::kMultiples, 2, 4},
                {Rule::kCounts, 2, 5},
                {Rule::kMultiples, 1, 2},
                {Rule::kCounts, 2, 3}};
    for (const auto& row : rows) {
      plan.rule = row.rule;
      plan.batch = row.batch;
      plan.other = row.other;
      if (count > 0) plans.push_back(plan);
    }
  }
  return plans;
}

Tensor example_of(const ConvertInput& input, const Dims& sizes) {
  if (!input.given.defined()) {
    return made_up_tensor(sizes, dtype_named(input.dtype));
  }
  // Tiles the example to the wanted sizes.
  Dims repeats(sizes.size(), 1);
  for (const int64_t dim : input.open) {
    const auto at = static_cast<size_t>(dim);
    repeats[at] = (sizes[at] + input.given.sizes()[at] - 1) / std::max<int64_t>(input.given.sizes()[at], 1);
  }
  Tensor out = ops::repeat(input.given, repeats);
  for (const int64_t dim : input.open) {
    const int64_t size = std::min(sizes[static_cast<size_t>(dim)], out.size(dim));
    out = ops::narrow(out, dim, int64_t{0}, size);
  }
  return out.contiguous();
}

}  // namespace tensord::server
