#pragma once
// The Error that a piece of work throws.
#include <string>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {

/// Code of the Error that `work` throws; `none` when it throws none.
template <typename Work>
std::string code_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.code();
  }
  return "none";
}

/// That Error itself; a failure of the test when there is none.
template <typename Work>
Error error_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return failure("none", "none");
}

}  // namespace mlenv
