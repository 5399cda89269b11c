// By itself, since mlenv-node has another in its place (recipes/static_versions.cpp).
#include <string>

#include <solv/evr.h>

#include "recipes/resolve/solv_state.hpp"

namespace mlenv::solv {

int compare_versions(std::string_view a, std::string_view b) {
  static const PoolHandle pool = [] {
    PoolHandle made{pool_create()};
    pool_setdisttype(made.get(), DISTTYPE_DEB);
    return made;
  }();
  return pool_evrcmp_str(pool.get(), std::string(a).c_str(), std::string(b).c_str(),
                         EVRCMP_COMPARE);
}

}  // namespace mlenv::solv
