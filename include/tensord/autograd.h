#pragma once

// Gradients: requires_grad, backward, grad, hooks, saved-tensor hooks, NoGradGuard, AutocastGuard, CheckpointScope,
// functions with a custom backward, gradcheck.
#include "tensord/tensor.h"
//
#include "core/autograd/autocast.h"
#include "core/autograd/checkpoint.h"
#include "core/autograd/engine.h"
#include "core/autograd/function.h"
#include "core/autograd/functional.h"
#include "core/autograd/gradcheck.h"
#include "core/autograd/hooks/post_accumulate.h"
#include "core/autograd/hooks/saved_hooks.h"
#include "core/autograd/variable.h"
#include "core/tensor/grad_mode.h"
