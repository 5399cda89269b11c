#pragma once
// Logins that a program keeps: `docker-credential-NAME get`, the protocol of
// docker-credential-helpers. The server goes to its standard input, `{"Username", "Secret"}` comes
// from its standard output.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "images/credentials.hpp"

namespace mlenv {

/// Long enough for one that asks a cloud, or a person.
constexpr std::chrono::milliseconds kHelperDeadline{60'000};

/// What `docker-credential-NAME` knows of `host`; nullopt when it says that it has no login, or
/// gives an empty one. Throws `credentials` when it is not on PATH, fails otherwise or answers
/// something else, `cannot-start`, and `timeout` past the deadline (it is killed then). Messages
/// and the log never hold what could be a secret: of its words only a line that is no JSON is
/// passed on.
std::optional<Credentials> ask_credential_helper(
    const std::string& name, std::string_view host,
    std::chrono::milliseconds deadline = kHelperDeadline);

}  // namespace mlenv
