#pragma once
// What the caller tells the re-executed half, and what that half tells back. Both travel as CBOR,
// which, unlike JSON, carries paths and variables that are not UTF-8.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/sandbox/sandbox.hpp"

namespace mlenv::sandbox {

inline constexpr std::string_view kArgument = "__sandbox";

/// Descriptors that the re-executed half finds open.
inline constexpr int kPlanFd = 3;
inline constexpr int kReportFd = 4;  ///< takes one encoded Error; closed by the program's execve
inline constexpr int kResultFd = 5;  ///< takes one encoded Result; recorded runs only

/// Status of a half that could not do its own work.
inline constexpr int kOwnFailure = 125;

/// How the tree becomes `/`.
enum class Way { namespaces, change_root };

/// Of one program, itself and all that it starts. The kernel's own limit (RLIMIT_NPROC, somewhat
/// above) holds for nobody who builds as root, and what goes on at it has no end by itself.
inline constexpr std::size_t kMostProcesses = 7000;

struct Plan {
  SandboxCommand command;  ///< its descriptors are not carried; no argv: start nothing, all is well
  bool recorded = false;
  Owners initial;
  Way way = Way::namespaces;
  int caller = 0;  ///< process id
};

struct Result {
  std::optional<Exit> exit;
  Owners owners;
  FileCapabilities capabilities;
  std::string trouble;    ///< why there is no answer; empty when there is one
  bool too_many = false;  ///< it was ended for the number of its processes
};

std::string encode(const Plan& plan);
Plan decode_plan(std::string_view bytes);
std::string encode(const Result& result);
/// Throws `too-many-processes` where the program was ended for that.
Result decode_result(std::string_view bytes);
std::string encode(const Error& error);
Error decode_error(std::string_view bytes);

}  // namespace mlenv::sandbox
