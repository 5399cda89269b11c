#include "runner/notebook/server.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

/// One layer with these programs.
class NotebookServerTest : public testing::Test {
 protected:
  void add(const std::string& path, mode_t mode = 0755) {
    const fs::path file = layer_.path() / path;
    make_folders(file.parent_path());
    write_file(file, "#!/bin/sh\n", false);
    fs::permissions(file, static_cast<fs::perms>(mode));
  }
  std::optional<NotebookServer> found() {
    image_.env = {"PATH=/opt/venv/bin:/usr/bin"};
    return find_notebook_server(image_, UnpackedNames{{layer_.path()}});
  }
  TemporaryFolder layer_{temporary_root()};
  ImageConfig image_;
};

TEST_F(NotebookServerTest, TheBestOfAnImageIsTaken) {
  EXPECT_FALSE(found());
  add("opt/venv/bin/jupyter-server");
  EXPECT_EQ(found()->title, "Jupyter Server");
  add("usr/bin/jupyter-notebook");
  EXPECT_EQ(found()->page, "tree");
  add("opt/venv/bin/jupyter-lab", 0644);
  EXPECT_EQ(found()->program, "/usr/bin/jupyter-notebook") << "what cannot be run is none";
  add("opt/venv/bin/jupyter-lab");
  EXPECT_EQ(found()->program, "/opt/venv/bin/jupyter-lab");
}

TEST_F(NotebookServerTest, AKernelIsLookedForWhereTheServerDoes) {
  add("opt/venv/bin/jupyter-lab");
  EXPECT_FALSE(found()->has_kernel);
  add("opt/venv/share/jupyter/kernels/python3/kernel.json");
  EXPECT_TRUE(found()->has_kernel);
}

TEST(ServeNotebook, TheTokenIsAVariableAndNoArgument) {
  LocalRun run;
  run.argv = {"--LabApp.news_url=None"};
  serve_notebook(run, {"/opt/venv/bin/jupyter-lab", "JupyterLab", "lab", true},
                 {8890, "t0", "lab"});
  const std::vector<std::string> expected = {"/opt/venv/bin/jupyter-lab",
                                             "-y",
                                             "--no-browser",
                                             "--allow-root",
                                             "--ip=127.0.0.1",
                                             "--port=8890",
                                             "--KernelManager.transport=ipc",
                                             "--LabApp.news_url=None"};
  EXPECT_EQ(run.argv, expected);
  EXPECT_NE(std::find(run.env.begin(), run.env.end(), "JUPYTER_TOKEN=t0"), run.env.end());
  EXPECT_TRUE(run.options.ports.empty());
}

TEST(ServeNotebook, KernelsMayBeReachedAsThePersonSays) {
  LocalRun run;
  run.argv = {"--KernelManager.transport=tcp"};
  serve_notebook(run, {"/usr/bin/jupyter-lab", "JupyterLab", "lab", true}, {8890, "t0", "lab"});
  EXPECT_EQ(run.argv.back(), "--KernelManager.transport=tcp");
  EXPECT_EQ(std::find(run.argv.begin(), run.argv.end(), "--KernelManager.transport=ipc"),
            run.argv.end());
}

TEST(ServeNotebook, ANetworkOfItsOwnPassesThePortOn) {
  LocalRun run;
  run.options.network = "private";
  serve_notebook(run, {"/usr/bin/jupyter-lab", "JupyterLab", "lab", true}, {8890, "t0", "lab"});
  EXPECT_EQ(run.argv.at(4), "--ip=0.0.0.0");
  const std::vector<PublishedPort> expected = {{"127.0.0.1", 8890, 8890, "tcp"}};
  EXPECT_EQ(run.options.ports, expected);
}

TEST(NotebookAddress, HasTheTokenInItsUrlAlone) {
  const NotebookAddress address{8888, "abc", "lab"};
  EXPECT_EQ(address.url(), "http://127.0.0.1:8888/lab?token=abc");
  EXPECT_EQ(address.place(), "http://127.0.0.1:8888/lab");
}

TEST(NotebookToken, IsLongAndNeverTheSame) {
  EXPECT_EQ(new_notebook_token().size(), 48U);
  EXPECT_NE(new_notebook_token(), new_notebook_token());
}

/// A listener of this test's on 127.0.0.1.
class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);  // NOLINT: bind(2)'s way
    EXPECT_EQ(::bind(fd_.get(), plain, size), 0);
    EXPECT_EQ(::listen(fd_.get(), 1), 0);
    EXPECT_EQ(::getsockname(fd_.get(), plain, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  std::uint16_t port() const { return port_; }

 private:
  Fd fd_;
  std::uint16_t port_ = 0;
};

TEST(NotebookPort, ATakenOneIsRefused) {
  const Listener other;
  EXPECT_EQ(code_of([&] { notebook_port(other.port(), {}); }), "port-taken");
  const std::vector<PublishedPort> published = {{"127.0.0.1", 9001, 80, "tcp"}};
  EXPECT_EQ(code_of([&] { notebook_port(9001, published); }), "port-taken");
}

TEST(NotebookPort, AFreeOneIsFound) {
  const std::uint16_t port = notebook_port(std::nullopt, {});
  EXPECT_GE(port, 8888);
  const std::vector<PublishedPort> published = {{"127.0.0.1", port, port, "tcp"}};
  EXPECT_NE(notebook_port(std::nullopt, published), port);
}

TEST(NotebookAnswers, WhoListensAndSaysNothingIsNone) {
  const Listener silent;
  EXPECT_FALSE(notebook_answers({silent.port(), "t", "lab"}));
}

TEST(NotebookUrl, IsKeptForItsUserAlone) {
  const TemporaryFolder folder{temporary_root()};
  EXPECT_FALSE(kept_notebook_url(folder.path()));
  keep_notebook_url(folder.path(), "http://127.0.0.1:1/?token=x");
  EXPECT_EQ(kept_notebook_url(folder.path()), "http://127.0.0.1:1/?token=x");
  for (const fs::path& file : list_folder(folder.path())) {
    EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  }
}

}  // namespace
}  // namespace mlenv
