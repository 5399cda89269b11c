#include "runner/notebook/server.hpp"

#include <sys/random.h>
#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.hpp"

namespace mlenv {
namespace {

struct Flavour {
  const char* program;
  const char* title;
  const char* page;
};
constexpr std::array<Flavour, 3> kFlavours = {{{"jupyter-lab", "JupyterLab", "lab"},
                                               {"jupyter-notebook", "Jupyter Notebook", "tree"},
                                               {"jupyter-server", "Jupyter Server", ""}}};
constexpr const char* kUrlFile = "notebook-url";

}  // namespace

bool notebook_kernel_of(const ImageNames& files, const std::string& program) {
  // Where it looks: `jupyter --paths`, data.
  const fs::path prefix = fs::path(program).parent_path().parent_path();
  const std::array<fs::path, 3> folders = {prefix / "share", "/usr/local/share", "/usr/share"};
  return std::any_of(folders.begin(), folders.end(), [&](const fs::path& folder) {
    return files.has_entries((folder / "jupyter/kernels").string());
  });
}

std::optional<NotebookServer> find_notebook_server(const ImageConfig& image,
                                                   const ImageNames& files) {
  for (const Flavour& one : kFlavours) {
    const std::optional<std::string> program = program_in_image(image, files, one.program);
    if (program)
      return NotebookServer{*program, one.title, one.page, notebook_kernel_of(files, *program)};
  }
  return std::nullopt;
}

std::string NotebookAddress::place() const {
  return fmt::format("http://127.0.0.1:{}/{}", port, page);
}

std::string NotebookAddress::url() const { return place() + "?token=" + token; }

std::string new_notebook_token() {
  std::array<unsigned char, 24> bytes{};
  if (::getentropy(bytes.data(), bytes.size()) != 0) {
    throw os_error(errno, "cannot read random bytes");
  }
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

void serve_notebook(LocalRun& run, const NotebookServer& server, const NotebookAddress& address) {
  const bool is_private = run.options.network == "private";
  // In a network of its own it is reached from outside its loopback, by the published port alone.
  std::vector<std::string> argv = {server.program,
                                   "-y",
                                   "--no-browser",
                                   "--allow-root",
                                   is_private ? "--ip=0.0.0.0" : "--ip=127.0.0.1",
                                   fmt::format("--port={}", address.port)};
  // By TCP every user of this machine could connect to a kernel, and read what it prints.
  const bool chosen = std::any_of(run.argv.begin(), run.argv.end(), [](const std::string& one) {
    return one.find(".transport") != std::string::npos;
  });
  if (!chosen) argv.emplace_back("--KernelManager.transport=ipc");
  argv.insert(argv.end(), run.argv.begin(), run.argv.end());
  run.argv = std::move(argv);
  // Its sockets need a short path on a file system of the run's own; the person's word is heard.
  run.env.insert(run.env.begin(), "JUPYTER_RUNTIME_DIR=/dev/shm/jupyter");
  run.env.push_back("JUPYTER_TOKEN=" + address.token);
  // Another port than the one that was told would be of no use.
  run.env.emplace_back("JUPYTER_PORT_RETRIES=0");
  if (is_private) {
    run.options.ports.push_back({"127.0.0.1", address.port, address.port, "tcp"});
  }
}

void keep_notebook_url(const fs::path& run_folder, const std::string& url) {
  AtomicFile file{run_folder / kUrlFile, 0600};
  file.write(as_bytes(url));
  file.commit(false);
}

std::optional<std::string> kept_notebook_url(const fs::path& run_folder) {
  return read_file_if_exists(run_folder / kUrlFile);
}

}  // namespace mlenv
