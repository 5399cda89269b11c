#pragma once
// Whether the job's program is there: looked up before the container starts, so that what is wrong
// is told in words, with the status that a shell would give.
#include <optional>
#include <string>

#include "runner/engine/keeper/protocol.hpp"
#include "runner/local/bundle.hpp"
#include "runner/local/image_root.hpp"

namespace mlenv {

/// Why a shell would not start it: 127 not found, 126 found but not executable.
struct CannotRun {
  int status = 127;
  std::string why;
};

/// Looks argv[0] up as execvp(3) does, in the image and in what is mounted over it, links between
/// the two followed. nullopt: it can run, as far as can be seen from outside (not what lies on a
/// file system that only the container has).
std::optional<CannotRun> cannot_run(const Bundle& bundle, const ImageRoot& image);

/// What the kernel says of a program that it does not execute; nullopt where something else failed.
std::optional<CannotRun> refused_by_kernel(const keeper::Failed& problem,
                                           const std::string& program);

}  // namespace mlenv
