#pragma once
// What of this machine's logins the programs get that mlenv starts: uv, pip and git read ~/.netrc
// by themselves, and send its `default` to whoever asks and each entry over plain HTTP. They are
// given what base/login_policy.hpp lets mlenv itself send.
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"

namespace mlenv {

/// Hosts of the `http://` addresses in these texts, in lower case and without ports.
std::vector<std::string> plain_http_hosts(const std::vector<std::string>& texts);

/// For uv and pip: NETRC names a file in `folder` without `default`, and without the hosts that
/// `words` or this environment's own settings (UV_…, PIP_…) name with plain HTTP. Nothing where
/// there is no netrc file.
void narrow_netrc(std::vector<std::string>& environment, const std::vector<std::string>& words,
                  const fs::path& folder);

/// For git, which has no such variable: options that keep it on the scheme that `arguments` name,
/// and without helpers on plain HTTP, for in front of them.
std::vector<std::string> git_login_options(const std::vector<std::string>& arguments);

/// For git: HOME is a folder with links to all that the user's has, and a netrc file as above (of
/// plain HTTP: none), where `arguments` hold a web address and ~/.netrc says more than that.
void narrow_git_home(std::vector<std::string>& environment,
                     const std::vector<std::string>& arguments);

/// Of this process: `NAME=value`.
std::vector<std::string> own_environment();
/// In place of what it was; an empty value takes the variable out.
void set_variable(std::vector<std::string>& environment, const std::string& name,
                  const std::string& value);
/// The value of `name` among `NAME=value`; empty when it is not there.
std::string_view variable_in(const std::vector<std::string>& environment, std::string_view name);

}  // namespace mlenv
