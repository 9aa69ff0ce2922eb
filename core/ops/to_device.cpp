#include "core/ops/to_device.h"

#include <algorithm>
#include <array>

#include "core/ops/dispatch.h"
#include "core/ops/run.h"

namespace tensord::ops {

Value to_device(const Value& value, Device device) {
  if (value.is_strided() && value.to_tensor().defined()) return value.to_tensor().to(device);
  if (value.is_tensor() && value.to_tensor().defined() && !(value.to_tensor().device() == device)) {
    static const Op& to = get_op("aten::to.prim_Device");
    if (has_kernel(to, value.to_tensor()))
      return run(to, std::array<Value, 5>{value, device, Value(), false, false})[0];
  }
  if (value.is_list()) {
    const ListObject& list = *value.to_list();
    if (std::ranges::all_of(list.items, [](const Value& item) { return item.is_number(); })) return value;
    return make_list(list.element, to_device(list.items, device));
  }
  if (value.is_tuple()) {
    const TupleObject& tuple = *value.to_tuple();
    return make_intrusive<TupleObject>(to_device(tuple.items, device), tuple.type);
  }
  if (value.is_dict()) {
    const DictObject& dict = *value.to_dict();
    const auto out = make_intrusive<DictObject>(dict.key, dict.value);
    for (const auto& [key, item] : dict.items()) out->set(key, to_device(item, device));
    return out;
  }
  return value;
}

std::vector<Value> to_device(std::vector<Value> values, Device device) {
  for (Value& value : values) value = to_device(value, device);
  return values;
}

}  // namespace tensord::ops
