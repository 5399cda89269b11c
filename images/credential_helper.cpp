#include "images/credential_helper.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_depth.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/size_limits.hpp"

namespace mlenv {
namespace {

// What every helper says of a server that it has no login for (docker-credential-helpers).
constexpr std::string_view kUnknownServer = "credentials not found in native keychain";
// The user name of a login that is an identity token.
constexpr std::string_view kTokenUser = "<token>";
constexpr std::size_t kLongestWords = 200;

/// The first line that says something, unless it could hold a login: that is JSON.
std::string harmless_words(std::string_view text) {
  if (text.find('{') != std::string_view::npos) return {};
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  std::string line{text.substr(0, text.find_first_of("\r\n"))};
  std::erase_if(line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (line.size() > kLongestWords) line = line.substr(0, kLongestWords) + "…";
  return line;
}

Error gives_none(const std::string& program, std::string_view host, std::string reason) {
  return failure("credentials", "`{}` gives no login for `{}`", program, host)
      .because(std::move(reason))
      .hint(fmt::format("see what it says: `echo {} | {} get >/dev/null`", host, program));
}

std::optional<Credentials> read_answer(const std::string& program, std::string_view host,
                                       const std::string& answer) {
  if (answer.size() > size_limit::kHelperAnswer || is_too_deep(answer)) {
    throw gives_none(program, host, "its answer is larger than a login");
  }
  // Not parse_json: its messages quote what they could not read.
  const nlohmann::json root = nlohmann::json::parse(answer, nullptr, false);
  const auto text = [&](const char* name) -> std::optional<std::string> {
    const auto found = root.is_object() ? root.find(name) : root.end();
    if (found == root.end() || !found->is_string()) return std::nullopt;
    return found->get<std::string>();
  };
  const std::optional<std::string> user = text("Username");
  std::optional<std::string> secret = text("Secret");
  if (!user || !secret) {
    throw gives_none(program, host, "its answer is not JSON with a `Username` and a `Secret`");
  }
  if (user->empty() && secret->empty()) return std::nullopt;
  if (user->empty() || secret->empty()) {
    throw gives_none(
        program, host,
        fmt::format("its answer has an empty `{}`", user->empty() ? "Username" : "Secret"));
  }
  if (*user == kTokenUser) return Credentials{{}, {}, std::move(*secret)};
  return Credentials{*user, std::move(*secret), {}};
}

}  // namespace

std::optional<Credentials> ask_credential_helper(const std::string& name, std::string_view host,
                                                 std::chrono::milliseconds deadline) {
  const std::string program = "docker-credential-" + name;
  const std::optional<fs::path> found =
      name.find('/') == std::string::npos ? find_program(program) : std::nullopt;
  if (!found) {
    throw failure("credentials", "the login for `{}` is kept by `{}`", host, program)
        .because("there is no such program on PATH")
        .hint(fmt::format("install it, or take it out of `credHelpers` or `credsStore` in docker's "
                          "config.json and run `docker login {}`",
                          host));
  }
  log::debug("asking {} for the login at {}", program, host);
  const std::string intent = fmt::format("asking `{}` for the login at `{}`", program, host);
  const Captured said = while_doing(intent, [&] {
    try {
      Command command{Purpose{"credential-helper"}};
      command.argv = {found->string(), "get"};
      command.folder = "/";
      return run_captured(std::move(command), deadline, host);
    } catch (Error& error) {
      if (error.code() != "timeout") throw;
      error.hint(fmt::format(
          "it may wait to be unlocked: do that first, with `echo {} | {} get >/dev/null`", host,
          program));
      throw;
    }
  });
  if (said.exit.code == 0) return read_answer(program, host, said.out);
  for (const std::string& words : {said.out, said.err}) {
    if (words.find(kUnknownServer) != std::string::npos) return std::nullopt;
  }
  // Helpers made with Docker's own library complain on standard output.
  std::string words = harmless_words(said.out);
  if (words.empty()) words = harmless_words(said.err);
  const std::string status = said.exit.signalled
                                 ? fmt::format("it was ended by signal {}", said.exit.code - 128)
                                 : fmt::format("its exit status is {}", said.exit.code);
  throw gives_none(program, host, words.empty() ? status : words);
}

}  // namespace mlenv
