#pragma once

#include <functional>
#include <string>

#include "core/ops/value.h"

namespace tensord::ops {

// Makes an object of a class in "__torch__.torch.classes." from its state: PyTorch writes such objects as the result of
// their __getstate__, and the archive has no code for them.
using CustomClassFn = std::function<IntrusivePtr<OpaqueObject>(const Value& state)>;

// Null if there is none.
const CustomClassFn* find_custom_class(const std::string& qualified_name);

// Registers one before main. The function must treat the state as untrusted, and throws Error.
class CustomClassBuilder {
 public:
  CustomClassBuilder(const char* qualified_name, CustomClassFn function);
};

#define CUSTOM_CLASS(NAME, FUNCTION)                                                                            \
  static const ::tensord::ops::CustomClassBuilder TENSORD_CONCAT(custom_class_registration_, __COUNTER__)(NAME, \
                                                                                                          FUNCTION)

}  // namespace tensord::ops
