# Joins the rows of baselines and harness (see README.md) into the report: a table, or with json=true one JSON value.

# The raw value of a key in a flat JSON object on one line; "" if it is missing or null.
function field(line, key,    rest, end) {
    if (!match(line, "\"" key "\" *: *")) return ""
    rest = substr(line, RSTART + RLENGTH)
    if (substr(rest, 1, 1) == "\"") {
        rest = substr(rest, 2)
        end = index(rest, "\"")
        return substr(rest, 1, end - 1)
    }
    match(rest, /[,}]/)
    rest = substr(rest, 1, RSTART - 1)
    gsub(/ /, "", rest)
    return rest == "null" ? "" : rest
}

function text(value) {
    gsub(/\\/, "\\\\", value)
    gsub(/"/, "\\\"", value)
    return value == "" ? "null" : "\"" value "\""
}

function number(value) { return value == "" ? "null" : value }

# Whether a budget such as "<= 1.5x", ">= 0.5x" (of the peer) or "<= 2" (in the row's unit) is met; "" if unknown.
function judged(budget, value, ratio,    word, measured) {
    if (split(budget, word, " ") < 2) return ""
    measured = word[2] ~ /x$/ ? ratio : value
    if (measured == "") return ""
    if (word[1] == "<=") return measured + 0 <= word[2] + 0 ? "true" : "false"
    if (word[1] == ">=") return measured + 0 >= word[2] + 0 ? "true" : "false"
    return ""
}

function short(value) { return value == "" ? "" : sprintf(value + 0 >= 1000 ? "%.0f" : "%.4g", value) }

/^ *\{/ {
    count++
    name[count] = field($0, "name")
    value[count] = field($0, "value")
    unit[count] = field($0, "unit")
    peer[count] = field($0, "peer")
    budget[count] = field($0, "budget")
    measured[name[count]] = value[count]
    named[peer[count]] = 1
}

END {
    if (json == "true") {
        printf "{\"machine\":%s,\"rows\":[", text(machine)
    } else {
        print machine
        printf "\n%-34s %12s %-11s  %-24s %10s %7s  %-10s %s\n", "what", "value", "unit", "beside", "its value", "ratio", "budget", "met"
    }
    for (i = 1; i <= count; i++) {
        beside = peer[i] == "" ? "" : measured[peer[i]]
        ratio = beside == "" || beside + 0 == 0 || value[i] == "" ? "" : sprintf("%.3f", value[i] / beside)
        met = judged(budget[i], value[i], ratio)
        if (json == "true") {
            printf "%s\n{\"name\":%s,\"value\":%s,\"unit\":%s,\"peer\":%s,\"peerValue\":%s,\"ratio\":%s,\"budget\":%s,\"met\":%s}", \
                (i > 1 ? "," : ""), text(name[i]), number(value[i]), text(unit[i]), text(peer[i]), number(beside), \
                number(ratio), text(budget[i]), (met == "" ? "null" : met)
        } else if (!(name[i] in named) || budget[i] != "") {
            printf "%-34s %12s %-11s  %-24s %10s %7s  %-10s %s\n", name[i], short(value[i]), unit[i], peer[i], \
                short(beside), short(ratio), budget[i], (met == "true" ? "yes" : met == "false" ? "NO" : "")
        }
    }
    if (json == "true") print "\n]}"
}
