#pragma once

// Modules, layers, initialization, gradient clipping.
#include "tensord/tensor.h"
//
#include "core/nn/init.h"
#include "core/nn/layers/adaptive_softmax.h"
#include "core/nn/layers/containers.h"
#include "core/nn/layers/conv.h"
#include "core/nn/layers/layers.h"
#include "core/nn/layers/losses.h"
#include "core/nn/layers/norms.h"
#include "core/nn/layers/operator_layers.h"
#include "core/nn/layers/pooling.h"
#include "core/nn/layers/rnn.h"
#include "core/nn/layers/transformer.h"
#include "core/nn/module.h"
#include "core/nn/optim/clip_grad.h"
