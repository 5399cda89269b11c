#pragma once
// Compiles Python sources by the image's own interpreter, in the sandbox, and makes the result
// canonical. A worker process reads sources on its standard input and answers with bytecode, so no
// file of the image but the interpreter is ever needed.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/sandbox/sandbox.hpp"

namespace mlenv {

struct PythonSource {
  std::string path;  ///< absolute in the image: goes into the code objects' co_filename
  std::string text;
};

class BytecodeCompiler {
 public:
  /// `base` is the tree that holds `interpreter` (its path in the image), a Python 3.MINOR. Starts
  /// at most `workers` processes, each when first needed.
  BytecodeCompiler(fs::path base, std::string interpreter, int python_minor, unsigned workers);
  ~BytecodeCompiler();
  BytecodeCompiler(const BytecodeCompiler&) = delete;
  BytecodeCompiler& operator=(const BytecodeCompiler&) = delete;

  /// One .pyc a source (unchecked-hash, PEP 552), in order; empty where the source does not
  /// compile, as compileall leaves such files alone. May be called from many threads; waits for a
  /// free worker. Throws `bytecode-failed` when the interpreter dies.
  std::vector<std::string> compile(const std::vector<PythonSource>& sources);

 private:
  class Worker;
  std::vector<std::string> exchange(const std::vector<PythonSource>& sources);
  std::unique_ptr<Worker> borrow();
  void give_back(std::unique_ptr<Worker> worker);

  fs::path base_;
  std::string interpreter_;
  int python_minor_;
  unsigned free_slots_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

}  // namespace mlenv
