// toml++ compiled here, for mlenv-node, which is linked with no shared library.
#define TOML_HEADER_ONLY 0   // NOLINT(*-macro-usage): toml++'s own switches
#define TOML_IMPLEMENTATION  // NOLINT(*-macro-usage)
#include <toml++/toml.h>
