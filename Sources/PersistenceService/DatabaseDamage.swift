/// The damage that a check of the database has found.
package struct DatabaseDamage: Sendable, Hashable, CustomStringConvertible {
    /// The findings as SQLite reports them; at least one.
    package let findings: [String]

    /// Parses the rows of `quick_check`, each of which may have several lines; nil if there is no damage.
    package init?(_ rows: [String]) {
        let lines = rows.flatMap { $0.split(separator: "\n").map(String.init) }
        // A line such as "*** in database main ***" only names the database.
        let findings = lines.filter { $0 != "ok" && !$0.hasPrefix("*** in database") }
        guard !findings.isEmpty else { return nil }
        self.findings = findings
    }

    /// Whether a row of `quick_check` reports that a page couldn’t be read: “unable to get the page. error code=8458”. The
    /// lowest byte of the code is that of SQLite’s errors of input and output.
    static func isReadError(_ row: String) -> Bool {
        row.split(separator: "\n").contains { line in
            guard let mark = line.firstRange(of: "error code=") else { return false }
            return Int(line[mark.upperBound...].prefix { $0.isNumber }).map { $0 & 0xFF == 10 } ?? false
        }
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
