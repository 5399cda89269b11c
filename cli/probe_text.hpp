#pragma once
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace mlenv::cli {

/// The readable form of mlenv.gpu-probe/1.
std::vector<std::string> probe_text(const nlohmann::json& answer);

/// The process that asks the driver: main() calls this first and returns its value when it is
/// engaged
/// (`mlenv __probe`). nullopt: this is an ordinary start.
std::optional<int> probe_main(int argc, char** argv);

}  // namespace mlenv::cli
