import Foundation

/// Measures a real fleet of release executables in this one’s folder. `Tests/Benchmarks/README.md` describes its use.
@main
struct Main {
    static func main() throws {
        let bench = try Bench(arguments: CommandLine.arguments, environment: ProcessInfo.processInfo.environment)
        try bench.run()
    }
}
