#pragma once
#include <utility>

#include "base/fact.hpp"

namespace mlenv {

template <class T>
Fact<T> from_test(T value) {
  return known(std::move(value), "test");
}

}  // namespace mlenv
