#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ops/attributes/saved_for.h"
#include "core/ops/op.h"

namespace tensord::autograd {

// What the recorder needs to know about an operator, computed once.
struct OpInfo {
  enum class Role : uint8_t {
    kPassthrough,     // autograd ignores it, or the operators that it calls are recorded
    kConstant,        // its results are constants
    kRecord,          // returns new tensors, or views
    kWrite,           // writes its argument `target` and returns it
    kWriteComposite,  // in-place variant of a composite
    kOut,             // writes a keyword argument
  };
  // The role of an operator, by its record alone.
  static Role role_of(const ops::Op& op);

  const ops::Op* op = nullptr;
  const ops::Op* gradient_op = nullptr;  // the operator whose gradient it uses: itself, or the functional variant
  Role role = Role::kPassthrough;
  Role complex_role = Role::kPassthrough;  // if a tensor or a number of the call is complex
  bool is_view = false;
  bool gives_many = false;               // returns a list, or several tensors
  uint8_t target = 0;                    // the argument that is written or viewed
  std::vector<uint8_t> tensors;          // arguments that are tensors or lists of tensors
  std::vector<uint8_t> written;          // arguments whose tensors are written
  std::vector<ops::SavedFor> saved_for;  // by argument; empty: the tensors that the operator saves
  std::string node_name;                 // "MulBackward0"
};

// Thread-safe; the reference stays valid.
const OpInfo& info_of(const ops::Op& op);

}  // namespace tensord::autograd
