#include "runner/compare/html.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "runner/compare/figures.hpp"
#include "runner/compare/published.hpp"
#include "runner/compare/rows.hpp"
#include "runner/compare/scripts.hpp"
#include "runner/compare/side.hpp"

namespace mlenv::compare {
namespace {

struct Group {
  std::string_view id;  ///< first part of its rows' ids
  const char* title;
};
constexpr std::array kGroups = {
    Group{"command", "Your command"},
    Group{"start", "Start"},
    Group{"stop", "Stop"},
    Group{"train", "Training"},
    Group{"cpu", "Processors"},
    Group{"memory", "Memory"},
    Group{"data", "Loading data"},
    Group{"disk", "Disk"},
    Group{"network", "Network"},
    Group{"snapshot", "Snapshot"},
    Group{"size", "To ship and to update"},
    Group{"time", "To move"},
    Group{"isolation", "Isolation"},
    Group{"cost", "Cost"},
};

class Page {
 public:
  explicit Page(const Comparison& from) : from_(from) {}

  std::string text() {
    head();
    classic();
    for (const Group& group : kGroups) add_group(group);
    method();
    others();
    add("</main>\n");
    scripts();
    add("</body>\n</html>\n");
    return std::move(out_);
  }

 private:
  void add(std::string_view text) { out_ += text; }
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args)
    requires(sizeof...(Args) > 0)
  {
    out_ += fmt::format(format, std::forward<Args>(args)...);
  }

  void head() {
    add("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n");
    add("<title>{}: container, virtual machine, bare host</title>\n<style>\n{}</style>\n</head>\n"
        "<body>\n<main>\n",
        html_text(from_.terms.image_name), page_style());
    add("<h1>{}: container, virtual machine, bare host</h1>\n", html_text(from_.terms.image_name));
    add("<p>One image, started in several ways, measured in turn on <b>{}</b>: {}, {} processors, "
        "{} of memory, kernel {}.</p>\n",
        html_text(from_.host.name), html_text(from_.host.cpu), from_.terms.processors,
        figure(static_cast<double>(from_.host.memory_bytes), "bytes"),
        html_text(from_.host.kernel));
    const std::vector<std::string> remarks = remarks_of(from_);
    if (!remarks.empty()) {
      add("<ul class=\"remarks\">\n");
      for (const std::string& one : remarks) add("<li>{}</li>\n", html_text(one));
      add("</ul>\n");
    }
    sides();
  }

  void sides() {
    add("<h2>Sides</h2>\n<dl class=\"sides\">\n");
    for (const SideResult& side : from_.sides) {
      const std::string how = side.why ? "not measured: " + *side.why : about_side(from_, side.id);
      add("<dt>{}{}</dt><dd>{}</dd>\n", html_text(side.title), marked(common_mark(from_, side.id)),
          html_text(how.empty() ? how_started(side.id) : how));
    }
    add("</dl>\n");
  }

  static std::string how_started(const std::string& id) {
    const SideSpec* const spec = find_side_spec(id);
    return spec != nullptr ? std::string(spec->how) : "measured";
  }

  static std::string marked(const std::string& mark) {
    return mark.empty() ? "" : " <em>" + html_text(mark) + "</em>";
  }

  std::vector<const SideResult*> there() const {
    std::vector<const SideResult*> sides;
    for (const SideResult& side : from_.sides) {
      if (!side.why) sides.push_back(&side);
    }
    return sides;
  }

  std::string short_cell(const RowResult& row, const SideResult& side) const {
    const Cell* const cell = find_cell(row, side.id);
    if (cell == nullptr) return "not measured";
    const CellWords words = words_of(from_, row, *cell);
    std::string text = html_text(words.value);
    text += marked(mark_of(from_, *cell));
    if (!words.interval.empty()) text += "<br><small>" + html_text(words.interval) + "</small>";
    return text;
  }

  void classic() {
    add("<h2>Heavy or light? In figures</h2>\n<p>The table of every lecture, with what was found "
        "on this host in place of its adjectives.</p>\n"
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"the classic table\">"
        "<table>\n<thead><tr><th scope=\"col\">Question</th><th scope=\"col\">Usually said</th>");
    for (const SideResult* const side : there()) {
      add("<th scope=\"col\">{}</th>", html_text(side->title));
    }
    add("</tr></thead>\n<tbody>\n");
    for (const ClassicRow& one : classic_rows()) {
      const RowResult* const row = find_row(from_, one.row);
      if (row == nullptr) continue;
      add("<tr><th scope=\"row\">{}<br><small>{}</small></th><td>{}</td>", html_text(one.question),
          html_text(row->title), html_text(one.adjectives));
      for (const SideResult* const side : there()) add("<td>{}</td>", short_cell(*row, *side));
      add("</tr>\n");
    }
    add("</tbody></table></div>\n");
  }

  void add_group(const Group& group) {
    bool any = false;
    for (const RowResult& row : from_.rows) {
      const std::string_view id = row.id;
      if (id.substr(0, id.find('.')) != group.id) continue;
      if (!any) add("<section>\n<h2>{}</h2>\n", group.title);
      any = true;
      add_row(row);
    }
    if (any) add("</section>\n");
  }

  void add_row(const RowResult& row) {
    add("<article id=\"{0}\">\n<h3>{1}</h3>\n<p>{2}</p>\n<div class=\"row\">\n"
        "<table>\n<thead><tr><th scope=\"col\">Side</th><th scope=\"col\">{3}</th>"
        "<th scope=\"col\">Interval</th><th scope=\"col\">Remarks</th></tr></thead>\n<tbody>\n",
        html_text(row.id), html_text(row.title), html_text(row.meaning),
        row.computed       ? "Computed"
        : row.unit.empty() ? "Found"
                           : "Median");
    for (const SideResult& side : from_.sides) {
      const Cell* const cell = find_cell(row, side.id);
      if (cell == nullptr) continue;
      const CellWords words = words_of(from_, row, *cell);
      add("<tr class=\"{}\"><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>\n",
          words.measured ? "there" : "gap", html_text(side.title), html_text(words.value),
          html_text(words.interval), html_text(words.note));
    }
    add("</tbody></table>\n");
    if (has_chart(row)) {
      add("<div class=\"chart\" style=\"--bars: {}\"><canvas data-row=\"{}\" role=\"img\" "
          "aria-label=\"chart of the "
          "table "
          "beside it: {}\"></canvas></div>\n",
          bars_of(row), html_text(row.id), html_text(row.title));
    }
    std::string better;
    // Of a file that anybody may have written.
    if (better_of(row) != Better::neither) {
      better = fmt::format("{} is better; ", name_of(better_of(row)));
    }
    add("</div>\n<p class=\"how\">{}{} <code>{}</code></p>\n</article>\n", better,
        row.computed ? "computed:" : "measured by", html_text(row.command));
  }

  static std::ptrdiff_t bars_of(const RowResult& row) {
    return std::count_if(row.sides.begin(), row.sides.end(),
                         [](const Cell& cell) { return cell.summary.has_value(); });
  }
  static bool has_chart(const RowResult& row) {
    constexpr std::ptrdiff_t kFewest = 2;
    return bars_of(row) >= kFewest;
  }

  void method() {
    add("<section>\n<h2>How it was measured</h2>\n<p>Each side is warmed up, then all take turns; "
        "another one begins each round. Shown are medians and the interval that holds the true "
        "median with 95 % confidence, by order statistics (Le Boudec 2010, section 2.2; Hoefler "
        "and "
        "Belli, SC 2015); with fewer than six starts it is all of the range. No value is left out. "
        "Where two intervals touch, no difference is claimed.</p>\n<ul>\n");
    for (const Session& one : from_.sessions) {
      add("<li>{}: {:.0f} s of at most {:.0f} s{}</li>\n", html_text(one.started), one.seconds,
          one.budget_seconds, noise_text(one.noise));
    }
    add("</ul>\n</section>\n");
  }

  static std::string noise_text(const Noise& noise) {
    std::string text;
    constexpr double kPercent = 100;
    const auto percent = [&](const char* what, const std::optional<double>& share) {
      if (share) text += fmt::format("; {} {:.1f} %", what, *share * kPercent);
    };
    percent("processors busy before", noise.busy_before);
    percent("stolen by a hypervisor", noise.steal);
    text += "; governor " + html_text(noise.governor.value_or("unknown"));
    return text + "; turbo " + html_text(noise.turbo.value_or("unknown"));
  }

  void others() {
    add("<section>\n<h2>Published by others</h2>\n<p><strong>Not measured here</strong>: other "
        "machines, other years, as context alone.</p>\n<ul>\n");
    for (const Published& one : published()) {
      add("<li>{}: {} (<a href=\"{}\">{}</a>)</li>\n", html_text(one.what), html_text(one.figure),
          one.address, html_text(one.source));
    }
    add("</ul>\n</section>\n");
  }

  /// What the charts show, by row.
  nlohmann::json figures() const {
    nlohmann::json rows = nlohmann::json::object();
    for (const RowResult& row : from_.rows) {
      if (!has_chart(row)) continue;
      nlohmann::json bars = nlohmann::json::array();
      for (const Cell& cell : row.sides) {
        if (!cell.summary) continue;
        const SideResult* const side = find_side(from_, cell.side);
        bars.push_back({{"side", side != nullptr ? side->title : cell.side},
                        {"median", cell.summary->median},
                        {"low", cell.summary->low},
                        {"high", cell.summary->high},
                        {"text", words_of(from_, row, cell).value}});
      }
      rows[row.id] = {{"bars", bars}, {"unit", row.unit}};
    }
    return rows;
  }

  void scripts() {
    if (chart_library().empty()) return;
    // Within a script element `</` would end it; the JSON says the same with an escape.
    std::string data = canonical(figures());
    for (std::size_t at = data.find('<'); at != std::string::npos; at = data.find('<', at)) {
      data.replace(at, 1, "\\u003c");
    }
    add("<script type=\"application/json\" id=\"figures\">");
    add(std::string_view(data));
    add("</script>\n<script>");
    add(chart_library());
    add("</script>\n<script>\n");
    add(page_script());
    add("</script>\n");
  }

  const Comparison& from_;
  std::string out_;
};

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string html_page(const Comparison& comparison) { return Page(comparison).text(); }

}  // namespace mlenv::compare
