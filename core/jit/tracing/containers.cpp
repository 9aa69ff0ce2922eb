// Operators on lists, tuples and dicts: they rearrange traced values and write nothing to the file.
#include <algorithm>
#include <string_view>

#include "core/base/error.h"
#include "core/jit/tracing/call.h"

namespace tensord::jit::tracing {
namespace {

// Implements [a, b] + [c].
bool join(Call& c) {
  auto joined = std::make_shared<std::vector<Traced>>();
  for (const Traced& list : c.arguments()) {
    if (!list.items) return false;
    joined->insert(joined->end(), list.items->begin(), list.items->end());
  }
  c.results()[0].items = std::move(joined);
  return true;
}

bool length(Call& c) {
  const int64_t count = std::ssize(*c.first().items) / (c.first().a.is_dict() ? 2 : 1);
  c.results() = {wrap(count)};
  return true;
}

bool copy_list(Call& c) {
  c.results()[0].items = std::make_shared<std::vector<Traced>>(*c.first().items);
  return true;
}

bool append(Call& c) {
  c.first().items->push_back(c.in("el"));
  c.results() = {c.first()};
  return true;
}

bool set_item(Call& c) {
  std::vector<Traced>& items = *c.first().items;
  const Traced &key = c.arguments().at(1), &value = c.arguments().at(2);
  if (!c.first().a.is_dict()) {
    const int64_t index = wrap_dim(c.integer(c.op().schema.arguments[1].name.c_str()), std::ssize(items));
    items[static_cast<size_t>(index)] = value;
    return true;
  }
  for (size_t i = 0; i < items.size(); i += 2) {
    if (!items[i].a.equals(key.a)) continue;
    items[i + 1] = value;
    return true;
  }
  items.push_back(key);
  items.push_back(value);
  return true;
}

// For a dict, only its keys matter, and they are known.
bool contains(Call& c) {
  const Traced &all = c.first(), &key = c.arguments().at(1);
  if (!all.a.is_dict()) return false;
  bool is_there = false;
  for (size_t i = 0; i < all.items->size(); i += 2) is_there = is_there || (*all.items)[i].a.equals(key.a);
  c.results() = {wrap(is_there)};
  return true;
}

bool dict_items(Call& c) {
  const std::string_view name = c.op().schema.name;
  std::vector<Traced>& out = *c.results()[0].items;
  for (size_t i = 0; i < out.size(); ++i) {
    const Traced &key = (*c.first().items)[2 * i], &value = (*c.first().items)[2 * i + 1];
    if (name == "aten::keys") {
      out[i] = key;
    } else if (name == "aten::values") {
      out[i] = value;
    } else {
      *out[i].items = {key, value};
    }
  }
  return true;
}

bool get_item(Call& c) {
  const Traced& list = c.first();
  if (list.a.is_dict()) {
    for (size_t i = 0; i < list.items->size(); i += 2) {
      if (!(*list.items)[i].a.equals(c.arguments().at(1).a)) continue;
      const Traced item = (*list.items)[i + 1];
      c.results() = {item};
      return true;
    }
    return false;
  }
  const int64_t index = wrap_dim(c.integer(c.op().schema.arguments[1].name.c_str()), std::ssize(*list.items));
  const Traced item = (*list.items)[static_cast<size_t>(index)];
  c.results() = {item};
  return true;
}

// Implements l[start:end:step].
bool slice(Call& c) {
  if (!c.first().a.is_list()) return false;
  const std::vector<Traced>& items = *c.first().items;
  const int64_t count = std::ssize(items), step = c.integer("step");
  if (step <= 0) return false;
  const auto place = [&](const char* name, int64_t otherwise) {
    if (!c.has(name)) return otherwise;
    const int64_t at = c.integer(name);
    return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count);
  };
  auto taken = std::make_shared<std::vector<Traced>>();
  for (int64_t i = place("start", 0), end = place("end", count); i < end; i += step) {
    taken->push_back(items[static_cast<size_t>(i)]);
  }
  c.results()[0].items = std::move(taken);
  return true;
}

// Implements [a, b] * n.
bool repeat(Call& c) {
  if (!c.first().a.is_list()) return false;
  auto all = std::make_shared<std::vector<Traced>>();
  for (int64_t i = 0; i < c.integer("n"); ++i) {
    all->insert(all->end(), c.first().items->begin(), c.first().items->end());
  }
  c.results()[0].items = std::move(all);
  return true;
}

bool extend(Call& c) {
  const std::vector<Traced> more = *c.in("other").items;
  c.first().items->insert(c.first().items->end(), more.begin(), more.end());
  c.results().clear();
  return true;
}

bool reverse(Call& c) {
  std::ranges::reverse(*c.first().items);
  c.results().clear();
  return true;
}

struct Row {
  std::string_view name;
  bool (*run)(Call& c);
};

constexpr Row kRows[] = {
    {"aten::add", join},           {"aten::len", length},
    {"aten::list", copy_list},     {"aten::append", append},
    {"aten::_set_item", set_item}, {"aten::__contains__", contains},
    {"aten::items", dict_items},   {"aten::keys", dict_items},
    {"aten::values", dict_items},  {"aten::__getitem__", get_item},
    {"aten::slice", slice},        {"aten::mul", repeat},
    {"aten::extend", extend},      {"aten::reverse", reverse},
};

}  // namespace

bool run_container_call(Call& call) {
  for (const Row& row : kRows) {
    if (row.name == call.op().schema.name) return row.run(call);
  }
  return false;
}

}  // namespace tensord::jit::tracing
