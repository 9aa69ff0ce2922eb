#include "core/nn/module.h"

namespace tensord::nn {
namespace {

struct GlobalHooks {
  HookList<ForwardPreHook> forward_pre;
  HookList<ForwardHook> forward;
  HookList<BackwardHook> backward;
};
GlobalHooks& global_hooks() {
  static GlobalHooks hooks;
  return hooks;
}

}  // namespace

HookHandle register_global_forward_pre_hook(ForwardPreHook hook) {
  return global_hooks().forward_pre.add(std::move(hook));
}
HookHandle register_global_forward_hook(ForwardHook hook) { return global_hooks().forward.add(std::move(hook)); }
HookHandle register_global_full_backward_hook(BackwardHook hook) {
  return global_hooks().backward.add(std::move(hook));
}

}  // namespace tensord::nn
