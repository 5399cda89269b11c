#pragma once
// An image and a host without a fault between them, for tests to break in one place.
#include <string>

#include "runner/check/verdict.hpp"

namespace mlenv::test {

struct Pair {
  ImageFacts image;
  Facts host;
  Use use;

  Verdict verdict() const { return judge(image, host, use); }
  /// Ids of the findings, worst first, with a blank between; `id=risks` where the severity is not
  /// the rule's own.
  std::string found() const;
  /// Ids of what could not be judged.
  std::string unjudged() const;
  /// The one finding of a rule; fails the test where there is none.
  Finding finding(std::string_view rule) const;
};

/// torch 2.9.1 of CUDA 12.8, on a host with one H100 and driver 570.172.08.
Pair torch_on_h100();
/// scikit-learn's sort of image: no CUDA; on a host without GPUs.
Pair plain_on_cpu();

Gpu gpu(std::uint64_t index, const std::string& name, const std::string& capability);
void set_driver(Facts& host, const std::string& driver, const std::string& cuda);

}  // namespace mlenv::test
