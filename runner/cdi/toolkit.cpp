#include <chrono>

#include "base/digest.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "runner/cdi/gpus.hpp"
#include "runner/cdi/host_state.hpp"
#include "runner/own_folder.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::seconds kToolkitDeadline{30};

/// What the answer depends on.
Digest toolkit_state(const fs::path& program) {
  return Digest::of("mlenv.cdi/1\n" + file_stamp(program) + nvidia_state());
}

}  // namespace

std::optional<CdiSpec> toolkit_spec(const fs::path& program, const fs::path& cache) {
  const std::string name = toolkit_state(program).hex() + ".yaml";
  const std::string shown = program.string() + " cdi generate";
  try {
    // It names programs that will be started.
    const OwnFolder remembered{cache};
    if (const auto text = remembered.read(name)) {
      return parse_cdi_spec(*text, (cache / name).string());
    }
    Command command{Purpose{"cdi-spec"}};
    command.argv = {program.string(), "cdi", "generate", "--format=yaml"};
    const Captured result = run_captured(std::move(command), kToolkitDeadline);
    if (result.exit.code != 0) {
      log::debug("`{}` failed: {}", shown, result.err);
      return std::nullopt;
    }
    CdiSpec spec = parse_cdi_spec(result.out, shown);
    remembered.write(name, result.out);
    return spec;
  } catch (const Error& error) {
    log::debug("`{}` gave nothing: {}", shown, error.what());
    return std::nullopt;
  }
}

}  // namespace mlenv
