#pragma once
// Jupyter of an image, served to this machine's loopback and to whoever has the token.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/image_program.hpp"
#include "runner/local/run.hpp"

namespace mlenv {

struct NotebookServer {
  std::string program;      ///< absolute, in the image
  std::string title;        ///< for people: `JupyterLab`
  std::string page;         ///< of the URL: `lab`, `tree`, or nothing
  bool has_kernel = false;  ///< a kernel is installed where it looks for one
};
/// The best that the image's PATH has: JupyterLab, Jupyter Notebook, Jupyter Server. nullopt: none.
std::optional<NotebookServer> find_notebook_server(const ImageConfig& image,
                                                   const ImageNames& files);

/// Whether a server beside that program (of the same folder) finds a kernel.
bool notebook_kernel_of(const ImageNames& files, const std::string& program);

/// Where it is reached: on 127.0.0.1.
struct NotebookAddress {
  std::uint16_t port = 0;
  std::string token;
  std::string page;
  /// Everything: whoever has it may do what the run may.
  std::string url() const;
  /// The same without the token.
  std::string place() const;
};

/// 192 bits of the system's randomness, in hex.
std::string new_notebook_token();

/// Of `port`, or where that is nothing the first from 8888 on that nobody listens on and that is
/// not among `taken`. Throws `port-taken` and `no-port`.
std::uint16_t notebook_port(std::optional<std::uint16_t> port,
                            const std::vector<PublishedPort>& taken);

/// Makes `run` serve it there: command, variables, and with a network of its own the port. Its
/// arguments are what `run.argv` has. The token goes by a variable, since everybody may read
/// a command line.
void serve_notebook(LocalRun& run, const NotebookServer& server, const NotebookAddress& address);

/// Whether it answers there, and is ours: another user's server on that port is never asked, which
/// would tell it the token.
bool notebook_answers(const NotebookAddress& address);

/// The URL in the run's own folder, which its user alone may read.
void keep_notebook_url(const fs::path& run_folder, const std::string& url);
/// nullopt: the run serves none.
std::optional<std::string> kept_notebook_url(const fs::path& run_folder);

}  // namespace mlenv
