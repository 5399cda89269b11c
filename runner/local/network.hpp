#pragma once
// A network of the container's own. Packets go through a program in user space (pasta, else
// slirp4netns), as an ordinary user needs it; as root the same, so that nothing of the host's
// network is changed.
#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "runner/local/namespaces.hpp"
#include "runner/local/options.hpp"

namespace mlenv {

/// Throws `port-taken` (somebody listens there), or `no-port` (an address that is not this
/// machine's, a port that only root may take). In the host's network.
void check_ports(const std::vector<PublishedPort>& ports);

struct NetworkProgram {
  fs::path path;
  bool is_pasta = true;
};
/// Throws `no-network` with what to install.
NetworkProgram find_network_program();

/// Joins a network namespace to the host's network, as long as this object lives or its process
/// does: not even `kill -9` of the latter leaves the program behind.
class PrivateNetwork {
 public:
  /// `name_space` is what `make_network_namespace` made; `folder` is for its own files. Returns
  /// when the network and its ports can be used. Throws `no-network` with the program's words.
  PrivateNetwork(const NetworkProgram& program, const fs::path& name_space, const fs::path& folder,
                 const std::vector<PublishedPort>& ports, Identity identity);
  PrivateNetwork(const PrivateNetwork&) = delete;
  PrivateNetwork& operator=(const PrivateNetwork&) = delete;
  ~PrivateNetwork() = default;

 private:
  PidNamespace processes_;  ///< the program's own
};

/// resolv.conf as it can be reached from a private network: name servers on the host's loopback
/// are asked through the program, and so is the host where it names none.
std::string private_resolver(std::string_view host, bool by_pasta);

}  // namespace mlenv
