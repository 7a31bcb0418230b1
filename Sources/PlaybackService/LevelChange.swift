import PodcastModel
import WireMessages

extension WireChangeLevel {
    /// The smallest step that a level is moved by.
    private static let smallestStep = 0.001

    /// The level that the change leads to; it stops at the ends of the range.
    func level(from level: Double, in range: ClosedRange<Double>) throws(Failure) -> Double {
        let target: Double
        switch change {
        case .by(let change)? where change.isFinite:
            target = ((level + change) * 100).rounded() / 100
        case .steps(let steps)? where step.isFinite && step >= Self.smallestStep:
            // Steps lead to multiples of the step, so that up and down meet again.
            let start = steps > 0 ? (level / step + 1e-6).rounded(.down) : (level / step - 1e-6).rounded(.up)
            target = steps == 0 ? level : ((start + Double(steps)) * step * 1e6).rounded() / 1e6
        default:
            throw Failure(
                .invalidArgument,
                "A level changes by a number, or by steps; a step is \(Self.smallestStep) or more.")
        }
        return min(max(target, range.lowerBound), range.upperBound)
    }
}
