import ArgumentParser
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import LockstepClient
@testable import LockstepCommands

/// Tests the rows of statistics by day.
@Suite struct StatisticsTests {
    /// Days that begin at noon, so that every time zone has another date for each.
    private static func statistics(heard: [Double]) -> ListeningStatistics {
        let noon: Int64 = 1_790_000_000_000
        let rows = heard.enumerated().map { index, heard in
            WireStatistics.Row.with {
                ($0.day, $0.heard, $0.sessions) = (noon + Int64(index) * 86_400_000, heard, heard > 0 ? 1 : 0)
            }
        }
        let wire = WireStatistics.with {
            ($0.rows, $0.groups) = (rows, UInt32(rows.count))
            ($0.total.heard, $0.total.sessions) = (heard.reduce(0, +), UInt32(heard.count { $0 > 0 }))
        }
        return ListeningStatistics(
            wire, .day, from: Timestamp(milliseconds: noon), to: Timestamp(milliseconds: noon))
    }

    @Test func `the table has the days with sessions, and the bars also those between them`() {
        let statistics = Self.statistics(heard: [0, 60, 0, 0, 30, 0])
        let table = StatsCommand.lines(statistics, chartWidth: nil)
        #expect(table.count == 1 + 2 + 1, "\(table)")
        let chart = StatsCommand.lines(statistics, chartWidth: 60)
        #expect(chart.count == 1 + 4 + 1 && chart.count { $0.contains("█") } == 2, "\(chart)")
    }

    @Test(arguments: [(1, [30.0, 0]), (2, [60, 0, 0, 30, 0]), (9, [60, 0, 0, 30, 0])])
    func `a limit by day counts the days with sessions`(limit: Int, heard: [Double]) {
        let statistics = Self.statistics(heard: [0, 60, 0, 0, 30, 0]).limited(to: limit)
        #expect(statistics.rows.map(\.heard) == heard && statistics.total.heard == 90)
        #expect(Self.statistics(heard: [0]).limited(to: limit).rows.isEmpty)
    }
}
