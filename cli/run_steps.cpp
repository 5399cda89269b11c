#include "cli/run_steps.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "cli/settings.hpp"
#include "recipes/text.hpp"
#include "runner/local/machine.hpp"

namespace mlenv::cli {
namespace {

constexpr std::uint64_t kLargestSecret = std::uint64_t{1} << 20U;

Error bad_secret(std::string_view word, std::string_view why) {
  return usage_error("bad-secret", "`--secret {}` {}", word, why)
      .hint("write `--secret id=NAME,src=FILE` or `--secret id=NAME,env=VARIABLE`");
}

/// `id=NAME,src=FILE` in parts.
std::map<std::string, std::string> step_parts(std::string_view word) {
  std::map<std::string, std::string> parts;
  for (std::string_view rest = word; !rest.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t equals = part.find('=');
    std::string name{part.substr(0, equals)};
    if (name == "source") name = "src";
    const bool known = name == "id" || name == "src" || name == "env" || name == "type";
    if (!known || equals == std::string_view::npos) {
      throw bad_secret(word, fmt::format("holds `{}`, which means nothing here", part));
    }
    if (!parts.emplace(name, part.substr(equals + 1)).second) {
      throw bad_secret(word, fmt::format("gives `{}` twice", name));
    }
  }
  return parts;
}

/// The error names the file or variable, never what is in it.
std::string content_of(std::string_view word, const std::map<std::string, std::string>& parts) {
  if (parts.contains("env")) {
    if (parts.contains("src")) throw bad_secret(word, "gives both `src` and `env`");
    if (auto value = variable(parts.at("env"))) return *std::move(value);
    throw bad_secret(
        word, fmt::format("names the variable `{}`, which is not set or empty", parts.at("env")));
  }
  const fs::path path = parts.contains("src") ? parts.at("src") : parts.at("id");
  std::error_code error;
  if (fs::is_directory(path, error)) {
    throw bad_secret(word, fmt::format("names the folder `{}`", path.string()));
  }
  const Fd fd = [&] {
    try {
      return open_file(path);
    } catch (const Error& cause) {
      throw bad_secret(word, "cannot be read").because(cause.what());
    }
  }();
  FdSource source{fd.get()};
  return while_doing("reading the secret `" + parts.at("id") + "`",
                     [&] { return read_all(source, kLargestSecret); });
}

}  // namespace

std::map<std::string, std::string> read_secrets(const std::vector<std::string>& words) {
  std::map<std::string, std::string> secrets;
  for (const std::string& word : words) {
    const std::map<std::string, std::string> parts = step_parts(word);
    if (!parts.contains("id") || !is_secret_id(parts.at("id"))) {
      throw bad_secret(word, "has no `id` of letters, digits, `.`, `_` and `-`");
    }
    if (!secrets.emplace(parts.at("id"), content_of(word, parts)).second) {
      throw bad_secret(word, "gives a secret that was given before");
    }
  }
  return secrets;
}

RunOptions run_options(const Recipe& recipe, std::map<std::string, std::string> secrets) {
  RunOptions options;
  options.secrets = std::move(secrets);
  for (const RunStep& step : recipe.run) {
    options.places.push_back(
        fmt::format("{}:{}:{}", recipe.path.string(), step.command.line, step.command.column));
  }
  options.lend = [](const fs::path& root, const fs::path& folder) {
    return bring_machine(ImageRoot{root}, {"/", all_variables(), folder, /*single_id=*/true});
  };
  options.lent_at = kMachineTarget;
  return options;
}

bool differ_in_runs_alone(const Built& recorded, const Built& built, std::size_t runs) {
  if (recorded.layers.size() != built.layers.size() || runs > built.layers.size()) return false;
  const auto below = static_cast<std::ptrdiff_t>(built.layers.size() - runs);
  return recorded.platform == built.platform && recorded.files == built.files &&
         std::equal(recorded.layers.begin(), recorded.layers.begin() + below, built.layers.begin());
}

}  // namespace mlenv::cli
