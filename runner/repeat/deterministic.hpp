#pragma once
// `mlenv run --deterministic`: what makes one command give the same bits each time, as far as
// variables and Python can. Variables do what they can; the rest (torch's and TensorFlow's
// switches, seeds) a small Python file does, which is mounted into the run and acts when a library
// has been imported. What is set and where each is described: docs/reproduce.md.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runner/local/run.hpp"

namespace mlenv {

/// Where the container sees the Python file; first in PYTHONPATH.
inline constexpr std::string_view kPythonLayerTarget = "/run/mlenv-python";

/// Its text, as `sitecustomize` of the run.
std::string_view python_layer();

/// One `K=V` for each variable, sorted. They go over the image's and under the person's.
std::vector<std::string> deterministic_variables(std::uint64_t seed);

/// Makes `run` deterministic: variables under those in `run.env`, the Python file from
/// `run.scratch`, which is written to. Two are no matter of over and under: XLA_FLAGS keeps what
/// image or person set, and gets what it does not speak of itself; the file's folder comes first in
/// whatever PYTHONPATH is otherwise. `caller` has the values of bare names in `run.env`.
void make_deterministic(LocalRun& run, std::uint64_t seed,
                        const std::map<std::string, std::string>& caller);

}  // namespace mlenv
