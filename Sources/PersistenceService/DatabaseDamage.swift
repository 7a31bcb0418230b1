/// The damage that a check of the database has found.
package struct DatabaseDamage: Sendable, Hashable, CustomStringConvertible {
    /// Each thing that is wrong, in SQLite’s words; at least one.
    package let findings: [String]

    /// The damage in the rows of `quick_check`, each of which may have several lines; nil: there is none.
    package init?(_ rows: [String]) {
        let lines = rows.flatMap { $0.split(separator: "\n").map(String.init) }
        // A line such as "*** in database main ***" only says where it is.
        let findings = lines.filter { $0 != "ok" && !$0.hasPrefix("*** in database") }
        guard !findings.isEmpty else { return nil }
        self.findings = findings
    }

    /// The number of findings after which `quick_check` stops.
    private static let limit = 100

    /// The first finding and the number of the others, for an alert.
    package var description: String {
        let more = findings.count - 1
        let first = String(findings[0].prefix(200))
        let atLeast = findings.count < Self.limit ? "" : "at least "
        return more == 0 ? first : "\(first), and \(atLeast)\(more) more \(more == 1 ? "finding" : "findings")"
    }

    package var details: String { findings.joined(separator: "; ") }
}
