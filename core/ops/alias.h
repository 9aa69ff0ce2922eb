#pragma once

// Aliases of operators, registered before main as operators are (see op.h).
namespace tensord::ops {

// All overloads of `name`, including the in-place ones, are also found as `alias`. Graphs have the first name.
class AliasBuilder {
 public:
  AliasBuilder(const char* alias, const char* name);
};

#define TENSORD_ALIAS2(LINE, SECOND_NAME, OP_NAME) \
  static const ::tensord::ops::AliasBuilder alias_registration_##LINE(SECOND_NAME, OP_NAME)
#define TENSORD_ALIAS1(LINE, SECOND_NAME, OP_NAME) TENSORD_ALIAS2(LINE, SECOND_NAME, OP_NAME)
#define ALIAS(SECOND_NAME, OP_NAME) TENSORD_ALIAS1(__COUNTER__, SECOND_NAME, OP_NAME)

}  // namespace tensord::ops
