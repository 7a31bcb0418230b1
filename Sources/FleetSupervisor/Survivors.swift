import BusKit
import LibC
import PodcastModel
import SupervisorControl

/// The running processes of an earlier supervisor.
struct Survivors {
    private let home: LockstepHome
    /// The run directory, and that of the previous fleet if it differs.
    private let folders: [String]

    init(home: LockstepHome, earlierRunDirectory: String? = nil) {
        self.home = home
        folders = [home.runDirectory] + [earlierRunDirectory].compactMap(\.self).filter { $0 != home.runDirectory }
    }

    func record(_ service: String, pid: Int32) {
        let start = ProcessFacts.startTime(of: pid) ?? 0
        try? SmallFile.replaceWhole(file(service), with: "\(pid) \(start)\n", isDurable: false)
    }

    func forget(_ service: String) { _ = unlink(file(service)) }

    /// The running processes that a supervisor has recorded, or that hold a service’s lock.
    func find(_ services: [ServicePlan]) -> [Int32] {
        let pids = folders.flatMap { folder in
            services.flatMap { [recorded($0.name, in: folder), lockHolder($0, in: folder)].compactMap(\.self) }
        }
        return Array(Set(pids)).sorted()
    }

    /// Kills these processes, waits at most `limit` and returns those that still run.
    func clear(_ services: [ServicePlan], limit: Duration = .seconds(5)) -> [Int32] {
        ProcessEnding.end(with: SIGKILL, within: limit) { find(services) }.remaining
    }

    private func file(_ service: String) -> String { home.runFile(service + ".pid") }

    private func recorded(_ service: String, in folder: String) -> Int32? {
        let parts = SmallFile.text(of: "\(folder)/\(service).pid").split(whereSeparator: { $0 == " " || $0 == "\n" })
        guard parts.count == 2, let pid = Int32(parts[0]), let start = UInt64(parts[1]),
            ProcessFacts.startTime(of: pid) == start
        else { return nil }
        return pid
    }

    private func lockHolder(_ service: ServicePlan, in folder: String) -> Int32? {
        let path = "\(folder)/\(service.name).lock"
        guard FileLock.isHeld(path), let pid = FileLock.holder(of: path), pid != getpid(),
            ProcessFacts.name(of: pid) == String(service.program.prefix(15))
        else { return nil }
        return pid
    }
}
