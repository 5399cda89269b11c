#include "runner/compare/cost.hpp"

#include <charconv>
#include <cmath>

#include "base/error.hpp"
#include "runner/compare/side.hpp"

namespace mlenv::compare {
namespace {

constexpr double kSecondsPerHour = 3600;

struct CostRow {
  const char* id;
  const char* title;
  const char* unit;
  const char* meaning;
  const char* command;
  const char* from;  ///< row of the time
  double pieces;     ///< that the price is for; 0: how many pieces `own_price` pays
};

constexpr CostRow kCosts[] = {
    {"cost.step", "cost of a million training steps", "EUR",
     "Time that is rented is money: the price of an hour times the time of a step.",
     "price per hour × seconds of a step ÷ 3600", "train.step", 1e6},
    {"cost.command", "cost of a thousand runs of your command", "EUR",
     "The price of an hour times the time of your command.",
     "price per hour × seconds of the command ÷ 3600", "command.wall", 1e3},
    {"cost.own-steps", "training steps for which renting costs as much as owning", "steps",
     "Who trains more than this is better off with a machine of their own (power and care aside).",
     "price of the machine ÷ cost of a step", "train.step", 0},
    {"cost.own-commands", "runs of your command for which renting costs as much as owning", "runs",
     "Who runs it more often is better off with a machine of their own (power and care aside).",
     "price of the machine ÷ cost of a run", "command.wall", 0},
};

double cost_of_one(double price_per_hour, double seconds) {
  return price_per_hour * seconds / kSecondsPerHour;
}

Cell cost_cell(const SideResult& side, const RowResult& times, const CostRow& cost,
               std::optional<double> own_price) {
  Cell cell;
  cell.side = side.id;
  const Cell* const time = find_cell(times, side.id);
  if (!side.price_per_hour) {
    cell.why = "it has no price: --price " + side.id + "=EUR_PER_HOUR";
  } else if (time == nullptr || !time->summary || time->summary->median <= 0) {
    cell.why = time != nullptr && time->why ? time->why : "its time was not measured";
  } else {
    const double one = cost_of_one(*side.price_per_hour, time->summary->median);
    const bool pays = cost.pieces > 0;
    cell.samples.push_back({pays ? one * cost.pieces : std::floor(*own_price / one),
                            newest_session(*time).value_or(0)});
    cell.note = "computed";
  }
  return cell;
}

}  // namespace

std::map<std::string, double> parse_prices(const std::vector<std::string>& words) {
  std::map<std::string, double> prices;
  for (const std::string& word : words) {
    const std::size_t sign = word.find('=');
    const std::string side = word.substr(0, sign);
    double price = 0;
    const bool has_price = sign != std::string::npos;
    const char* const end = word.data() + word.size();
    const auto [stop, error] =
        std::from_chars(has_price ? word.data() + sign + 1 : end, end, price);
    if (find_side_spec(side) == nullptr || error != std::errc{} || stop != end ||
        !std::isfinite(price) || price <= 0) {
      throw usage_error("usage", "`--price`: `{}` is not SIDE=EUR_PER_HOUR", word)
          .hint("as in `--price vm=0.35`; sides are bare, builtin, docker, podman and vm");
    }
    prices[side] = price;
  }
  return prices;
}

void add_costs(Comparison& comparison, std::optional<double> own_price) {
  std::erase_if(comparison.rows, [](const RowResult& row) { return row.id.starts_with("cost."); });
  bool any = false;
  for (const SideResult& side : comparison.sides) any |= side.price_per_hour.has_value();
  if (!any) return;
  for (const CostRow& cost : kCosts) {
    if (cost.pieces == 0 && !own_price) continue;
    const RowResult* const times = find_row(std::as_const(comparison), cost.from);
    if (times == nullptr) continue;
    RowResult row;
    row.id = cost.id;
    row.title = cost.title;
    row.unit = cost.unit;
    row.better = name_of(cost.pieces > 0 ? Better::lower : Better::neither);
    row.meaning = cost.meaning;
    row.command = cost.command;
    row.computed = true;
    for (const SideResult& side : comparison.sides) {
      row.sides.push_back(cost_cell(side, *times, cost, own_price));
    }
    comparison.rows.push_back(std::move(row));
  }
  conclude(comparison);
}

}  // namespace mlenv::compare
