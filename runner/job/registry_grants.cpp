#include "runner/job/registry_grants.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <memory>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "runner/local/run_names.hpp"

namespace mlenv::job {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kLongestGrants{120};
constexpr std::size_t kMostGrantBytes = std::size_t{1} << 20U;

/// Its last words, an mlenv.error/1, as the error that it was.
Error error_in(const std::string& said, int status) {
  const std::size_t start = said.rfind("{\"code\"");
  const json value = json::parse(start == std::string::npos ? "" : said.substr(start), nullptr,
                                 /*allow_exceptions=*/false);
  if (!value.is_object() || !value.contains("frames") || !value["frames"].is_array()) {
    return failure("registry",
                   "`{}` gets no token for the nodes: `mlenv registry-grant` ended with status {}",
                   host_name(), status);
  }
  // Under Slurm that is another machine than the person's, with logins and settings of its own.
  Error error =
      failure(value.value("code", "registry"), "`{}` gets no token for the nodes", host_name());
  for (const json& frame : value["frames"]) {
    if (frame.is_string()) error.because(frame.get<std::string>());
  }
  if (value.contains("hint") && value["hint"].is_string()) {
    error.hint(value["hint"].get<std::string>());
  }
  return error;
}

/// One end of a pipe that nobody waits for.
struct HeardText {
  Fd fd{};
  std::string text{};
  /// False: there will be nothing more.
  bool hear() {
    std::array<char, 65536> buffer{};
    while (fd) {
      const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return true;
      if (count <= 0 || text.size() > kMostGrantBytes) {
        fd.reset();
      } else {
        text.append(buffer.data(), static_cast<std::size_t>(count));
      }
    }
    return false;
  }
};

Fd not_waited_for(Fd fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) < 0) {
    throw os_error(errno, "cannot listen to a child process");
  }
  return fd;
}

class Asker {
 public:
  explicit Asker(std::vector<std::string> command) { command_.argv = std::move(command); }

  void ask() {
    if (child_) return;
    Pipe out = make_pipe();
    Pipe err = make_pipe();
    command_.stdout_fd = out.write_end.get();
    command_.stderr_fd = err.write_end.get();
    child_.emplace(command_);
    out_ = {not_waited_for(std::move(out.read_end)), {}};
    err_ = {not_waited_for(std::move(err.read_end)), {}};
    began_ = steady_clock::now();
  }

  std::optional<RegistryGrant> next() {
    if (!child_) return std::nullopt;
    const bool late = steady_clock::now() - began_ > kLongestGrants;
    const bool more = out_.hear();
    if ((err_.hear() || more) && !late) return std::nullopt;
    const std::optional<Exit> exit = child_->wait(std::chrono::seconds{late ? 0 : 2});
    child_.reset();
    if (!exit) {
      throw failure("timeout", "the registry's token server gave `{}` nothing within {} s",
                    host_name(), kLongestGrants.count());
    }
    if (exit->code != 0) throw error_in(err_.text, exit->code);
    return parse_registry_grant(out_.text);
  }

 private:
  Command command_{Purpose{"registry-grant"}};
  std::optional<Child> child_;
  HeardText out_;
  HeardText err_;
  steady_clock::time_point began_;
};

std::optional<fs::path> mlenv_program(const PullFrom& from) {
  std::error_code error;
  if (fs::is_regular_file(from.program, error)) return from.program;
  fs::path own = own_executable();
  if (own.filename() != "mlenv-node") return own;
  return find_program("mlenv");
}

/// Where there is no mlenv.
GrantSource nobodys(const std::string& program) {
  return {[program] {
            throw failure("cannot-start", "`{}` has no `mlenv` that could ask for a token",
                          host_name())
                .because(fmt::format("neither `{}` is there, nor one on its PATH", program))
                .hint("install it there, or let the nodes share it");
          },
          [] { return std::nullopt; }};
}

}  // namespace

std::string render_registry_grant(const RegistryGrant& grant) {
  return canonical({{"schema", "mlenv.registry-grant/1"},
                    {"blobs", grant.blobs},
                    {"authorization", grant.authorization},
                    {"any_certificate", grant.any_certificate}});
}

RegistryGrant parse_registry_grant(std::string_view text) {
  const json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool fits = value.is_object() && value.value("schema", "") == "mlenv.registry-grant/1";
  try {
    if (fits) return {value.at("blobs"), value.at("authorization"), value.at("any_certificate")};
  } catch (const json::exception&) {
    // Nothing of it is quoted: it holds a token.
  }
  throw failure("bad-json", "what `mlenv registry-grant` answered is no grant");
}

GrantSource grants_by(std::vector<std::string> command) {
  const auto asker = std::make_shared<Asker>(std::move(command));
  return {[asker] { asker->ask(); }, [asker] { return asker->next(); }};
}

GrantSource grants_for(const PullFrom& from, const std::string& digest) {
  if (from.repository.empty()) return {};
  const std::optional<fs::path> program = mlenv_program(from);
  if (!program) return nobodys(from.program);
  std::vector<std::string> command = {program->string(), "--json", "registry-grant",
                                      from.repository + "@" + digest};
  if (from.plain_http) command.emplace_back("--plain-http");
  return grants_by(std::move(command));
}

}  // namespace mlenv::job
