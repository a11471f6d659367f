// SPDX-License-Identifier: Apache-2.0
#include "corpus/calls/kernels.h"

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "corpus/calls/wrong_calls.h"

namespace assay::wrong_calls {
namespace {

/// The plugin table holds calls of untyped parameters.
template <auto kCall>
struct Untyped;
template <class Params, assay_status (*kCall)(Params)>
struct Untyped<kCall> {
  static assay_status run(const void *params) {
    return params == nullptr ? assay_status{ASSAY_INVALID_ARGUMENT}
                             : kCall(*static_cast<const Params *>(params));
  }
};

template <auto kOrder>
struct UntypedOrder;
template <class Params, assay_status (*kOrder)(Params, const Order &)>
struct UntypedOrder<kOrder> {
  static assay_status ask(const void *params, assay_key_tile *tiles, int64_t capacity,
                          int64_t *first) {
    return kOrder(*static_cast<const Params *>(params), {tiles, capacity, first});
  }
};

const assay_kernel &own_kernel(const std::string &name) {
  const assay_plugin *own = assay_plugin_entry(ASSAY_ABI_MAJOR);
  for (int i = 0; i < own->num_kernels; ++i)
    if (own->kernels[i].name == name && own->kernels[i].target == ASSAY_TARGET_SIMT)
      return own->kernels[i];
  throw std::out_of_range(name);
}

assay_kernel wrong_kernel(const char *name, const char *right,
                          assay_status (*run)(const void *params)) {
  assay_kernel kernel = own_kernel(right);
  kernel.name = name;
  kernel.run = run;
  return kernel;
}

/// A right kernel that declares another order.
assay_kernel wrongly_declared(const char *name, const char *right,
                              decltype(assay_kernel::key_order) key_order) {
  assay_kernel kernel = own_kernel(right);
  kernel.name = name;
  kernel.key_order = key_order;
  return kernel;
}

struct Wrong {
  assay_kernel kernel;
  const char *mistake;
};

const std::vector<Wrong> &all() {
  static const std::vector<Wrong> kernels = [] {
    std::vector<Wrong> out = {
#define WRONG_CALL(name, right, mistake) {wrong_kernel(#name, right, Untyped<name>::run), mistake},
#define WRONG_ORDER(name, right, mistake)                                                          \
  {wrongly_declared(#name, right, UntypedOrder<name>::ask), mistake},
#include "corpus/calls/kernels.def"
#undef WRONG_CALL
#undef WRONG_ORDER
    };
    for (Wrong &wrong : out)
      if (wrong.kernel.name == std::string("latest_plan_used"))
        wrong.kernel.plan = Untyped<plan_of_latest>::run;
    return out;
  }();
  return kernels;
}

} // namespace

const assay_plugin &plugin() {
  static const std::vector<assay_kernel> kernels = [] {
    std::vector<assay_kernel> out;
    for (const Wrong &wrong : all())
      out.push_back(wrong.kernel);
    return out;
  }();
  static const assay_plugin table = {sizeof(assay_plugin),
                                     ASSAY_ABI_MAJOR,
                                     ASSAY_ABI_MINOR,
                                     "wrong_calls",
                                     static_cast<int32_t>(kernels.size()),
                                     kernels.data()};
  return table;
}

const assay_kernel *find_kernel(const char *name) {
  for (int i = 0; i < plugin().num_kernels; ++i)
    if (std::strcmp(plugin().kernels[i].name, name) == 0) return &plugin().kernels[i];
  return nullptr;
}

const char *mistake(const char *name) {
  for (const Wrong &wrong : all())
    if (std::strcmp(wrong.kernel.name, name) == 0) return wrong.mistake;
  return nullptr;
}

} // namespace assay::wrong_calls
